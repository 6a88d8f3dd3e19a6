plugin_LTLIBRARIES += plugins/reduce.la
plugins_reduce_la_SOURCES = plugins/reduce/reduce.c
plugins_reduce_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fno-math-errno -fno-trapping-math
plugins_reduce_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_reduce_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/reduce.c

CUDA_PLUGIN_KERNELS += plugins/reduce/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/reduce-cuda.la
plugins_reduce_cuda_la_SOURCES =
plugins_reduce_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_reduce_cuda_la_LIBADD = plugins/reduce/cuda.lo $(CUDA_LIBS)
endif

EXTRA_DIST += plugins/reduce/floats.cuh plugins/reduce/number.h plugins/reduce/product.h \
	plugins/reduce/number.cuh
