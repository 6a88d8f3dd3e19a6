plugin_LTLIBRARIES += plugins/quantized_product.la
plugins_quantized_product_la_SOURCES = plugins/quantized_product/quantized_product.c
plugins_quantized_product_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off
plugins_quantized_product_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_product_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_product.c
ONEDNN_SOURCES += plugins/quantized_product/onednn.c

CUDA_PLUGIN_KERNELS += plugins/quantized_product/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_product-cuda.la
plugins_quantized_product_cuda_la_SOURCES =
plugins_quantized_product_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_product_cuda_la_LIBADD = plugins/quantized_product/cuda.lo \
	plugins/common/quantized/hopper.lo $(CUDA_LIBS) $(PTHREAD_LIBS)
endif
