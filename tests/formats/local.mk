CRITERION_TESTS += \
	tests/formats/format \
	tests/formats/narrow \
	tests/formats/reformat \
	tests/formats/reformat_slab \
	tests/formats/reformat_values
tests_formats_narrow_SOURCES = tests/formats/narrow.c tests/formats/reference.h
tests_formats_reformat_SOURCES = tests/formats/reformat.c tests/formats/reference.h
tests_formats_reformat_slab_SOURCES = tests/formats/reformat_slab.c \
	kernels/reformat/reformat.c $(REFORMAT_MAKERS)
