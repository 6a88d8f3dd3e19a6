plugin_LTLIBRARIES += plugins/matrix_multiply.la
plugins_matrix_multiply_la_SOURCES = \
	plugins/matrix_multiply/exact.c \
	plugins/matrix_multiply/float.c \
	plugins/matrix_multiply/host.h \
	plugins/matrix_multiply/matrix_multiply.c \
	plugins/matrix_multiply/product.h \
	plugins/matrix_multiply/tile.h
plugins_matrix_multiply_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_matrix_multiply_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_matrix_multiply_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/matrix_multiply.c
