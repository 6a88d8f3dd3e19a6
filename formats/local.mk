FORMATS_SOURCES = \
	formats/format.c \
	formats/format.h \
	formats/reformat/reformat.c \
	formats/reformat/reformat.h \
	formats/reformat/avx2.c \
	formats/reformat/avx512.c \
	formats/reformat/check.c \
	formats/reformat/convert.c \
	formats/reformat/generic.c \
	formats/reformat/kernels.h \
	formats/reformat/panel.c \
	formats/reformat/plain.c \
	formats/reformat/runs.c \
	formats/reformat/shape.c \
	formats/reformat/stream.c \
	formats/reformat/tile.c \
	formats/reformat/tile.h \
	formats/reformat/transpose.h \
	formats/reformat/weave.c
EXTRA_DIST += formats/README.md
