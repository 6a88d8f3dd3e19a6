CRITERION_TESTS += \
	tests/formats/format \
	tests/formats/reformat \
	tests/formats/reformat_slab \
	tests/formats/reformat_values
tests_formats_reformat_slab_SOURCES = tests/formats/reformat_slab.c \
	kernels/reformat/reformat.c $(REFORMAT_MAKERS)
