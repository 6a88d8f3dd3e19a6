plugin_LTLIBRARIES += plugins/expand.la
plugins_expand_la_SOURCES = plugins/expand/expand.c plugins/expand/expand.h
plugins_expand_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_expand_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_expand_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/expand.c

CUDA_PLUGIN_KERNELS += plugins/expand/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/expand-cuda.la
plugins_expand_cuda_la_SOURCES =
plugins_expand_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_expand_cuda_la_LIBADD = plugins/expand/cuda.lo $(CUDA_LIBS)
endif
