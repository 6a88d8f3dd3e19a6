# Rows of bytes on the host, linked into each module that uses them.
noinst_LTLIBRARIES += plugins/common/libbytes.la
plugins_common_libbytes_la_SOURCES = plugins/common/bytes/rows.c plugins/common/bytes/rows.h
plugins_common_libbytes_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
BYTES_LIBS = plugins/common/libbytes.la $(M_LIBS)
