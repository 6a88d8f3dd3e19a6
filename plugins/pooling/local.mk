plugin_LTLIBRARIES += plugins/pooling.la
plugins_pooling_la_SOURCES = plugins/pooling/pooling.c plugins/pooling/pairs.h \
	plugins/pooling/rows.h \
	plugins/pooling/strip.h plugins/pooling/triples.h
plugins_pooling_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fno-math-errno -fno-trapping-math
plugins_pooling_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooling_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/pooling.c

ONEDNN_SOURCES += plugins/pooling/onednn.c

CUDA_PLUGIN_KERNELS += plugins/pooling/cuda.cu plugins/pooling/maxima.cu
EXTRA_DIST += plugins/pooling/fixed.cuh plugins/pooling/halves.cuh \
	plugins/pooling/maxima.cuh plugins/pooling/plain.cuh plugins/pooling/whole.cuh \
	plugins/pooling/window.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/pooling-cuda.la
plugins_pooling_cuda_la_SOURCES =
plugins_pooling_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooling_cuda_la_LIBADD = plugins/pooling/cuda.lo \
	plugins/pooling/maxima.lo $(CUDA_LIBS)
endif
