plugin_LTLIBRARIES += plugins/lrn.la
plugins_lrn_la_SOURCES = plugins/lrn/lrn.c plugins/lrn/lrn.h
plugins_lrn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_lrn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_lrn_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/lrn.c

ONEDNN_SOURCES += plugins/lrn/onednn.c

CUDA_PLUGIN_KERNELS += plugins/lrn/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/lrn-cuda.la
plugins_lrn_cuda_la_SOURCES =
plugins_lrn_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_lrn_cuda_la_LIBADD = plugins/lrn/cuda.lo $(CUDA_LIBS)
endif
