plugin_LTLIBRARIES += plugins/activation.la
plugins_activation_la_SOURCES = plugins/activation/activation.c
plugins_activation_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_activation_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_activation_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/activation.c

CUDA_PLUGIN_KERNELS += plugins/activation/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/activation-cuda.la
plugins_activation_cuda_la_SOURCES =
plugins_activation_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_activation_cuda_la_LIBADD = plugins/activation/cuda.lo $(CUDA_LIBS)
endif
