plugin_LTLIBRARIES += plugins/narrow.la
plugins_narrow_la_SOURCES = plugins/narrow/narrow.c plugins/narrow/narrow.h
plugins_narrow_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_narrow_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_narrow_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/narrow.c

CUDA_PLUGIN_KERNELS += plugins/narrow/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/narrow-cuda.la
plugins_narrow_cuda_la_SOURCES =
plugins_narrow_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_narrow_cuda_la_LIBADD = plugins/narrow/cuda.lo $(CUDA_LIBS)
endif
