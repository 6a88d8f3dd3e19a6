# Pointwise arithmetic on the host, linked into each module that uses it.
noinst_LTLIBRARIES += plugins/common/libpointwise.la
plugins_common_libpointwise_la_SOURCES = \
	plugins/common/pointwise.h \
	plugins/common/pointwise/double.c \
	plugins/common/pointwise/exact.h \
	plugins/common/pointwise/float.c \
	plugins/common/pointwise/functions.h \
	plugins/common/pointwise/int32.c \
	plugins/common/pointwise/int64.c \
	plugins/common/pointwise/integer.h \
	plugins/common/pointwise/layer.c \
	plugins/common/pointwise/operations.h \
	plugins/common/pointwise/pass.c \
	plugins/common/pointwise/row.h \
	plugins/common/pointwise/span.c \
	plugins/common/pointwise/span.h \
	plugins/common/pointwise/taps.h
plugins_common_libpointwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) \
	-fno-math-errno -fno-trapping-math
POINTWISE_LIBS = plugins/common/libpointwise.la $(M_LIBS)
