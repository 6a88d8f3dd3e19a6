plugin_LTLIBRARIES += plugins/elementwise.la
plugins_elementwise_la_SOURCES = plugins/elementwise/elementwise.c plugins/elementwise/elementwise.h
plugins_elementwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_elementwise_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_elementwise_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/elementwise.c

CUDA_PLUGIN_KERNELS += plugins/elementwise/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/elementwise-cuda.la
plugins_elementwise_cuda_la_SOURCES =
plugins_elementwise_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_elementwise_cuda_la_LIBADD = plugins/elementwise/cuda.lo $(CUDA_LIBS)
endif
