plugin_LTLIBRARIES += plugins/gather.la
plugins_gather_la_SOURCES = plugins/gather/gather.c plugins/gather/gather.h
plugins_gather_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_gather_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_gather_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/gather.c

CUDA_PLUGIN_KERNELS += plugins/gather/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/gather-cuda.la
plugins_gather_cuda_la_SOURCES =
plugins_gather_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_gather_cuda_la_LIBADD = plugins/gather/cuda.lo $(CUDA_LIBS)
endif
