plugin_LTLIBRARIES += plugins/quantized_sum.la
plugins_quantized_sum_la_SOURCES = plugins/quantized_sum/quantized_sum.c \
	plugins/quantized_sum/span.h
plugins_quantized_sum_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
plugins_quantized_sum_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_sum_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_sum.c

CUDA_PLUGIN_KERNELS += plugins/quantized_sum/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_sum-cuda.la
plugins_quantized_sum_cuda_la_SOURCES =
plugins_quantized_sum_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_sum_cuda_la_LIBADD = plugins/quantized_sum/cuda.lo $(CUDA_LIBS)
endif
