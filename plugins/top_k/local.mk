plugin_LTLIBRARIES += plugins/top_k.la
plugins_top_k_la_SOURCES = plugins/top_k/few.h plugins/top_k/top_k.c
plugins_top_k_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_top_k_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_top_k_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/top_k.c

CUDA_PLUGIN_KERNELS += plugins/top_k/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/top_k-cuda.la
plugins_top_k_cuda_la_SOURCES =
plugins_top_k_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_top_k_cuda_la_LIBADD = plugins/top_k/cuda.lo $(CUDA_LIBS)
endif

EXTRA_DIST += plugins/top_k/lists.cuh \
	plugins/top_k/top_k.h
