# Tokenizers and samplers, used by the command and its tests; libstrata itself reads no text.
LANGUAGE_SOURCES = \
	language/encode.c \
	language/file/added.c \
	language/file/hugging_face.c \
	language/file/llama2c.c \
	language/file/model.c \
	language/file/post.c \
	language/json/json.c \
	language/json/json.h \
	language/json/node.c \
	language/model/bpe.c \
	language/model/model.c \
	language/model/model.h \
	language/model/vocabulary.c \
	language/model/vocabulary.h \
	language/model/wordpiece.c \
	language/private.h \
	language/sample.c \
	language/sample.h \
	language/steps/added.c \
	language/steps/added.h \
	language/steps/decode.c \
	language/steps/decode.h \
	language/steps/decode_read.c \
	language/steps/normalise.c \
	language/steps/normalise.h \
	language/steps/replace.c \
	language/steps/split.c \
	language/steps/split.h \
	language/steps/split_steps.c \
	language/stream.c \
	language/text/bytes.c \
	language/text/bytes.h \
	language/text/expression.c \
	language/text/expression.h \
	language/text/pattern.c \
	language/text/pattern.h \
	language/text/unicode.c \
	language/text/unicode.h \
	language/token.h \
	language/tokenizer.c
noinst_LTLIBRARIES += libstrata-language.la
libstrata_language_la_SOURCES = $(LANGUAGE_SOURCES)
libstrata_language_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) \
	$(UTF8PROC_CFLAGS)
libstrata_language_la_LIBADD = $(JANSSON_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) $(M_LIBS)
EXTRA_DIST += language/README.md
