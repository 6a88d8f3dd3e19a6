plugin_LTLIBRARIES += plugins/dequantize.la
plugins_dequantize_la_SOURCES = plugins/dequantize/dequantize.c \
	plugins/common/bytes/blocks.h \
	plugins/common/quantized/operands.h \
	plugins/common/quantized/quantize.h
plugins_dequantize_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_dequantize_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_dequantize_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/dequantize.c

CUDA_PLUGIN_KERNELS += plugins/dequantize/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/dequantize-cuda.la
plugins_dequantize_cuda_la_SOURCES =
plugins_dequantize_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_dequantize_cuda_la_LIBADD = plugins/dequantize/cuda.lo $(CUDA_LIBS)
endif
