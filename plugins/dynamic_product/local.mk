plugin_LTLIBRARIES += plugins/dynamic_product.la
plugins_dynamic_product_la_SOURCES = plugins/dynamic_product/dynamic_product.c \
	plugins/dynamic_product/product.h \
	plugins/dynamic_product/tile.c
plugins_dynamic_product_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-trapping-math
plugins_dynamic_product_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_dynamic_product_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/dynamic_product.c

CUDA_PLUGIN_KERNELS += plugins/dynamic_product/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/dynamic_product-cuda.la
plugins_dynamic_product_cuda_la_SOURCES =
plugins_dynamic_product_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_dynamic_product_cuda_la_LIBADD = plugins/dynamic_product/cuda.lo $(CUDA_LIBS)
endif
