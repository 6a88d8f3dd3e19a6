plugin_LTLIBRARIES += plugins/select.la
plugins_select_la_SOURCES = plugins/select/select.c
plugins_select_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_select_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_select_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/select.c

CUDA_PLUGIN_KERNELS += plugins/select/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/select-cuda.la
plugins_select_cuda_la_SOURCES =
plugins_select_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_select_cuda_la_LIBADD = plugins/select/cuda.lo $(CUDA_LIBS)
endif
