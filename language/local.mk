# Text of language models: tokenizers and samplers.
noinst_LTLIBRARIES += liblanguage.la
liblanguage_la_SOURCES = \
	language/sample.c \
	language/sample.h
liblanguage_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
EXTRA_DIST += language/README.md
