plugin_LTLIBRARIES += plugins/softmax.la
plugins_softmax_la_SOURCES = \
	plugins/softmax/rows.c \
	plugins/softmax/rows.h \
	plugins/softmax/softmax.c
plugins_softmax_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fno-math-errno -fno-trapping-math
plugins_softmax_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_softmax_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/softmax.c

CUDA_PLUGIN_KERNELS += plugins/softmax/columns.cu \
	plugins/softmax/cuda.cu \
	plugins/softmax/packed.cu \
	plugins/softmax/ring.cu
EXTRA_DIST += plugins/softmax/job.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/softmax-cuda.la
plugins_softmax_cuda_la_SOURCES =
plugins_softmax_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_softmax_cuda_la_LIBADD = plugins/softmax/columns.lo \
	plugins/softmax/cuda.lo \
	plugins/softmax/packed.lo \
	plugins/softmax/ring.lo \
	$(CUDA_LIBS)
endif
