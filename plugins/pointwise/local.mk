plugin_LTLIBRARIES += plugins/pointwise.la
plugins_pointwise_la_SOURCES = \
	plugins/pointwise/pointwise.c \
	plugins/pointwise/program.c \
	plugins/pointwise/program.h
plugins_pointwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pointwise_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pointwise_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/pointwise.c

CUDA_PLUGIN_KERNELS += plugins/pointwise/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/pointwise-cuda.la
plugins_pointwise_cuda_la_SOURCES = plugins/pointwise/program.c
plugins_pointwise_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pointwise_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pointwise_cuda_la_LIBADD = plugins/pointwise/cuda.lo $(CUDA_LIBS)
endif
EXTRA_DIST += plugins/pointwise/machine.cuh
