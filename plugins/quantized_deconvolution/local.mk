plugin_LTLIBRARIES += plugins/quantized_deconvolution.la
plugins_quantized_deconvolution_la_SOURCES = \
	plugins/quantized_deconvolution/quantized_deconvolution.c
plugins_quantized_deconvolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off
plugins_quantized_deconvolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_deconvolution_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_deconvolution.c
ONEDNN_SOURCES += plugins/quantized_deconvolution/onednn.c
