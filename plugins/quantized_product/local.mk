plugin_LTLIBRARIES += plugins/quantized_product.la
plugins_quantized_product_la_SOURCES = \
	plugins/quantized_product/float8.c \
	plugins/quantized_product/product.h \
	plugins/quantized_product/quantized_product.c
plugins_quantized_product_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off
plugins_quantized_product_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_product_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_product.c
ONEDNN_SOURCES += plugins/quantized_product/onednn.c

CUDA_PLUGIN_KERNELS += \
	plugins/quantized_product/cuda.cu \
	plugins/quantized_product/float8.cu \
	plugins/quantized_product/float8_hopper.cu
EXTRA_DIST += plugins/quantized_product/float8.cuh plugins/quantized_product/float8.h
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_product-cuda.la
plugins_quantized_product_cuda_la_SOURCES =
plugins_quantized_product_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_product_cuda_la_LIBADD = plugins/quantized_product/cuda.lo \
	plugins/quantized_product/float8.lo plugins/quantized_product/float8_hopper.lo \
	$(QUANTIZED_HOPPER_KERNELS:.cu=.lo) $(CUDA_LIBS) $(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/quantized_product/float8_hopper.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
