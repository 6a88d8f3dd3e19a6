plugin_LTLIBRARIES += plugins/quantized_pooling.la
plugins_quantized_pooling_la_SOURCES = plugins/quantized_pooling/quantized_pooling.c \
	plugins/quantized_pooling/average.h
plugins_quantized_pooling_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
plugins_quantized_pooling_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_pooling_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_pooling.c

EXTRA_DIST += plugins/quantized_pooling/maxima.cuh
CUDA_PLUGIN_KERNELS += plugins/quantized_pooling/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_pooling-cuda.la
plugins_quantized_pooling_cuda_la_SOURCES =
plugins_quantized_pooling_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_pooling_cuda_la_LIBADD = plugins/quantized_pooling/cuda.lo $(CUDA_LIBS)
endif
