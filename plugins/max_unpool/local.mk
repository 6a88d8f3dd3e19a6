plugin_LTLIBRARIES += plugins/max_unpool.la
plugins_max_unpool_la_SOURCES = plugins/max_unpool/max_unpool.c \
	plugins/max_unpool/max_unpool.h
plugins_max_unpool_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_max_unpool_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_max_unpool_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/max_unpool.c

CUDA_PLUGIN_KERNELS += plugins/max_unpool/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/max_unpool-cuda.la
plugins_max_unpool_cuda_la_SOURCES =
plugins_max_unpool_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_max_unpool_cuda_la_LIBADD = plugins/max_unpool/cuda.lo $(CUDA_LIBS)
endif
