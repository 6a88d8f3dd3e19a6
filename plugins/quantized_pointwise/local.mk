plugin_LTLIBRARIES += plugins/quantized_pointwise.la
plugins_quantized_pointwise_la_SOURCES = \
	plugins/common/pointwise/program.c \
	plugins/quantized_pointwise/quantized_pointwise.c \
	plugins/quantized_pointwise/table.c \
	plugins/quantized_pointwise/table.h
plugins_quantized_pointwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
plugins_quantized_pointwise_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_pointwise_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/quantized_pointwise.c
