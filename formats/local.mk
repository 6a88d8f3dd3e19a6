FORMATS_SOURCES = \
	formats/format.c \
	formats/format.h \
	formats/reformat.c \
	formats/reformat.h \
	formats/reformat_avx2.c \
	formats/reformat_avx512.c \
	formats/reformat_check.c \
	formats/reformat_generic.c \
	formats/reformat_kernels.h \
	formats/reformat_panel.c \
	formats/reformat_plain.c \
	formats/reformat_runs.c \
	formats/reformat_shape.c \
	formats/reformat_stream.c \
	formats/reformat_tile.h \
	formats/reformat_transpose.h \
	formats/reformat_weave.c
EXTRA_DIST += formats/README.md
