plugin_LTLIBRARIES += plugins/quantize.la
plugins_quantize_la_SOURCES = plugins/quantize/quantize.c \
	plugins/common/bytes/blocks.h \
	plugins/common/quantized/operands.h \
	plugins/common/quantized/quantize.h
plugins_quantize_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
plugins_quantize_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantize_la_LIBADD = $(BYTES_LIBS) $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/quantize.c

CUDA_PLUGIN_KERNELS += plugins/quantize/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantize-cuda.la
plugins_quantize_cuda_la_SOURCES =
plugins_quantize_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantize_cuda_la_LIBADD = plugins/quantize/cuda.lo $(CUDA_LIBS)
endif
