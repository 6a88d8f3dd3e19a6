plugin_LTLIBRARIES += plugins/parametric_relu.la
plugins_parametric_relu_la_SOURCES = plugins/parametric_relu/parametric_relu.c
plugins_parametric_relu_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_parametric_relu_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_parametric_relu_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/parametric_relu.c

CUDA_PLUGIN_KERNELS += plugins/parametric_relu/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/parametric_relu-cuda.la
plugins_parametric_relu_cuda_la_SOURCES =
plugins_parametric_relu_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_parametric_relu_cuda_la_LIBADD = plugins/parametric_relu/cuda.lo $(CUDA_LIBS)
endif
