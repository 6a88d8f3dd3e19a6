plugin_LTLIBRARIES += plugins/deconvolution.la
plugins_deconvolution_la_SOURCES = plugins/deconvolution/deconvolution.c \
	plugins/deconvolution/deconvolution.h
plugins_deconvolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_deconvolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_deconvolution_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/deconvolution.c

ONEDNN_SOURCES += plugins/deconvolution/onednn.c
