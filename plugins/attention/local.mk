plugin_LTLIBRARIES += plugins/attention.la
plugins_attention_la_SOURCES = \
	plugins/attention/attention.c \
	plugins/attention/attention.h \
	plugins/attention/exact.c \
	plugins/attention/host.c \
	plugins/attention/host.h \
	plugins/attention/layer.h \
	plugins/attention/plan.c \
	plugins/attention/reference.c \
	plugins/attention/rows.c \
	plugins/attention/rows.h \
	plugins/attention/split.c \
	plugins/attention/tiled.c
plugins_attention_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fno-math-errno -fno-trapping-math
plugins_attention_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_attention_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/attention.c
