plugin_LTLIBRARIES += plugins/max_unpool.la
plugins_max_unpool_la_SOURCES = plugins/max_unpool/max_unpool.c \
	plugins/max_unpool/max_unpool.h
plugins_max_unpool_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_max_unpool_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_max_unpool_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/max_unpool.c
