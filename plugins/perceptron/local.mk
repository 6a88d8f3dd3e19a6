plugin_LTLIBRARIES += plugins/perceptron.la
plugins_perceptron_la_SOURCES = plugins/perceptron/perceptron.c \
	plugins/perceptron/planes.h plugins/perceptron/shape.h
plugins_perceptron_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_perceptron_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_perceptron_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/perceptron.c

CUDA_PLUGIN_KERNELS += plugins/perceptron/cuda.cu
EXTRA_DIST += plugins/perceptron/walk.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/perceptron-cuda.la
plugins_perceptron_cuda_la_SOURCES =
plugins_perceptron_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_perceptron_cuda_la_LIBADD = plugins/perceptron/cuda.lo $(CUDA_LIBS)
endif
