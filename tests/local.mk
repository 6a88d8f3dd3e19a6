# One program a unit, TAP through Automake's driver.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
	srcdir='$(abs_srcdir)'; export srcdir; \
	builddir='$(abs_builddir)'; export builddir; \
	CC='$(CC)'; export CC; \
	STRATA_PLUGIN_PATH='$(abs_builddir)/plugins/.libs'; export STRATA_PLUGIN_PATH; \
	STRATA_DEVICE_PATH='$(abs_builddir)/kernels/.libs'; export STRATA_DEVICE_PATH; \
	CRITERION_OUTPUTS=tap:-; export CRITERION_OUTPUTS;

LDADD = libstrata-internal.la $(CRITERION_LIBS) $(M_LIBS)

TESTS += tests/check-layering.sh tests/check-header.sh
dist_check_SCRIPTS += tests/check-layering.sh tests/check-header.sh

if HAVE_CRITERION
# A test is tests/test_UNIT.c and a line here; helpers of its own get a _SOURCES line.
CRITERION_TESTS = \
	tests/test_abi \
	tests/test_arena \
	tests/test_cuda_device \
	tests/test_cuda_reformat \
	tests/test_descriptor \
	tests/test_device \
	tests/test_engine \
	tests/test_file \
	tests/test_format \
	tests/test_image \
	tests/test_image_tensor \
	tests/test_layer_values \
	tests/test_models \
	tests/test_module \
	tests/test_note \
	tests/test_npy \
	tests/test_onednn \
	tests/test_plan \
	tests/test_reformat \
	tests/test_registry \
	tests/test_search \
	tests/test_status \
	tests/test_tensor \
	tests/test_weights \
	tests/test_weights_convert \
	tests/test_weights_malformed
tests_test_cuda_device_SOURCES = tests/test_cuda_device.c tests/cuda_device.h
tests_test_cuda_reformat_SOURCES = tests/test_cuda_reformat.c tests/cuda_device.h
tests_test_image_CPPFLAGS = $(AM_CPPFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
tests_test_models_SOURCES = tests/test_models.c tests/session.c tests/session.h \
	tests/yolo_boxes.c tests/yolo_boxes.h
tests_test_npy_SOURCES = tests/test_npy.c tests/weights_files.h tests/weights_refusal.h
tests_test_onednn_SOURCES = tests/test_onednn.c tests/onednn_problems.c \
	tests/onednn_problems.h tests/onednn_trial.c tests/onednn_trial.h
tests_test_weights_SOURCES = tests/test_weights.c tests/weights_files.h
tests_test_weights_malformed_SOURCES = tests/test_weights_malformed.c \
	tests/weights_refusal.h
tests_test_layer_values_SOURCES = \
	tests/layer_harness.c \
	tests/layer_harness.h \
	tests/layer_memory.c \
	tests/layer_memory.h \
	tests/layer_node.c \
	tests/test_layer_values.c
check_PROGRAMS += $(CRITERION_TESTS)
TESTS += $(CRITERION_TESTS)
endif

# Modules that tests compile themselves, and what they are compared with.
EXTRA_DIST += tests/abi/golden-offsets.txt tests/thirdparty/leaky_relu.c \
	tests/broken/build.h tests/broken/folders.h tests/broken/hidden.map \
	tests/broken/constructor.c tests/broken/entry.c tests/broken/extends.c \
	tests/broken/layer.c tests/broken/library.c tests/broken/no_note.c \
	tests/broken/program.c tests/broken/tls.c tests/broken/undefined.c
