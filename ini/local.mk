# Tables of names, apart: tests that count steps leave out the chance in them.
NAMES_SOURCES = ini/names.c ini/names.h
INI_SOURCES = \
	ini/config.c \
	ini/config.h \
	ini/error.c \
	ini/header.c \
	ini/line.c \
	ini/list.c \
	ini/override.c \
	ini/pair.c \
	ini/place.c \
	ini/private.h \
	ini/reader.c \
	ini/scan.c \
	ini/scan.h \
	ini/symbols.c \
	ini/text.c \
	ini/value.c \
	ini/vars.c
EXTRA_DIST += ini/README.md
