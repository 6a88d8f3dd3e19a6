plugin_LTLIBRARIES += plugins/scale.la
plugins_scale_la_SOURCES = plugins/scale/scale.c
plugins_scale_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_scale_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scale_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/scale.c

CUDA_PLUGIN_KERNELS += plugins/scale/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/scale-cuda.la
plugins_scale_cuda_la_SOURCES =
plugins_scale_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scale_cuda_la_LIBADD = plugins/scale/cuda.lo $(CUDA_LIBS)
endif
