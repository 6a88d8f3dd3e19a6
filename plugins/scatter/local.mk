plugin_LTLIBRARIES += plugins/scatter.la
plugins_scatter_la_SOURCES = plugins/scatter/exact.h plugins/scatter/replace.h \
	plugins/scatter/scatter.c \
	plugins/scatter/scatter.h plugins/scatter/select.h
plugins_scatter_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_scatter_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scatter_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/scatter.c

CUDA_PLUGIN_KERNELS += plugins/scatter/cuda.cu
EXTRA_DIST += plugins/scatter/update.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/scatter-cuda.la
plugins_scatter_cuda_la_SOURCES =
plugins_scatter_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scatter_cuda_la_LIBADD = plugins/scatter/cuda.lo $(CUDA_LIBS)
endif
