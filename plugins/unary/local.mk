plugin_LTLIBRARIES += plugins/unary.la
plugins_unary_la_SOURCES = plugins/unary/unary.c plugins/unary/unary.h
plugins_unary_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_unary_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_unary_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/unary.c

CUDA_PLUGIN_KERNELS += plugins/unary/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/unary-cuda.la
plugins_unary_cuda_la_SOURCES =
plugins_unary_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_unary_cuda_la_LIBADD = plugins/unary/cuda.lo $(CUDA_LIBS)
endif
