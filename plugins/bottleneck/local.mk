plugin_LTLIBRARIES += plugins/bottleneck.la
plugins_bottleneck_la_SOURCES = plugins/bottleneck/bottleneck.c \
	plugins/bottleneck/shape.h
plugins_bottleneck_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_bottleneck_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_bottleneck_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/bottleneck.c
