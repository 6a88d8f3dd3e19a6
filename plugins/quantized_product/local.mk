plugin_LTLIBRARIES += plugins/quantized_product.la
plugins_quantized_product_la_SOURCES = plugins/quantized_product/quantized_product.c
plugins_quantized_product_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off
plugins_quantized_product_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_product_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_product.c
ONEDNN_SOURCES += plugins/quantized_product/onednn.c
