plugin_LTLIBRARIES += plugins/gated.la
plugins_gated_la_SOURCES = plugins/gated/gated.c plugins/gated/gated.h
plugins_gated_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_gated_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_gated_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/gated.c

CUDA_PLUGIN_KERNELS += plugins/gated/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/gated-cuda.la
plugins_gated_cuda_la_SOURCES =
plugins_gated_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_gated_cuda_la_LIBADD = plugins/gated/cuda.lo $(CUDA_LIBS)
endif
