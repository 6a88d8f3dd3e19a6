# One program a unit, TAP through Automake's driver.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
# Each test says in its log what it took.
LOG_COMPILER = $(SHELL) $(srcdir)/tests/support/timed.sh
SH_LOG_COMPILER = $(LOG_COMPILER) $(SHELL)
TESTS_SAME = \
	tests/check/check \
	tests/check/numbers \
	tests/engine/faults \
	tests/engine/random_networks \
	tests/formats/reformat \
	tests/io/weights \
	tests/language/linear \
	tests/layers/layers \
	tests/network/linear \
	tests/planner/linear \
	tests/planner/nets \
	tests/planner/solver/exact \
	tests/planner/solver/laws
AM_TESTS_ENVIRONMENT = \
	STRATA_TEST_SAME='$(TESTS_SAME)'; export STRATA_TEST_SAME; \
	srcdir='$(abs_srcdir)'; export srcdir; \
	builddir='$(abs_builddir)'; export builddir; \
	CC='$(CC)'; export CC; \
	STRATA_DEVICE_PATH='$(abs_builddir)/kernels/.libs'; export STRATA_DEVICE_PATH; \
	STRATA_TEST_MODULES='$(abs_builddir)/tests/.libs'; export STRATA_TEST_MODULES; \
	SANITIZER_CFLAGS='$(SANITIZER_CFLAGS)'; export SANITIZER_CFLAGS; \
	MAKE='$(MAKE)'; export MAKE; \
	PYTHON='$(PYTHON)'; export PYTHON; \
	STRATA_TRIAL=no; export STRATA_TRIAL; \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	STRATA_COSTS=analytic; export STRATA_COSTS; \
	STRATA_PLUGIN_DIR='$(abs_builddir)/plugins/.libs'; export STRATA_PLUGIN_DIR; \
	STRATA_PLUGIN_PATH="$$STRATA_PLUGIN_DIR"; export STRATA_PLUGIN_PATH; \
	LSAN_OPTIONS='suppressions=$(abs_srcdir)/tests/lsan.supp:print_suppressions=0:use_tls=0'; \
	export LSAN_OPTIONS; \
	CRITERION_OUTPUTS=tap:-; export CRITERION_OUTPUTS;

EXTRA_DIST += tests/plain/criterion/criterion.h tests/lsan.supp
LDADD = libstrata-check.la libstrata-calibrate.la libstrata-internal.la $(CRITERION_LIBS) $(M_LIBS)

SHELL_TESTS = \
	tests/check-abi.sh \
	tests/check-command.sh \
	tests/planner/check-cost-cache.sh \
	tests/check-describe.sh \
	tests/check-docs.sh \
	tests/check-examples.sh \
	tests/check-drop-in.sh \
	tests/check-header.sh \
	tests/check-inputs.sh \
	tests/check-install.sh \
	tests/check-interrupt.sh \
	tests/check-kit.sh \
	tests/check-layering.sh \
	tests/check-layers.sh \
	tests/check-locale.sh \
	tests/check-measure.sh \
	tests/check-new-layer.sh \
	tests/tools/check-memory.sh \
	tests/tools/decoder.sh \
	tests/tools/deploy.sh \
	tests/tools/devices.sh \
	tests/tools/generate.sh \
	tests/tools/import.sh \
	tests/tools/few_bits.sh \
	tests/tools/quantise.sh \
	tests/check-plugins.sh \
	tests/check-progress.sh \
	tests/python/check-python.sh \
	tests/python/check-wheel.sh \
	tests/check-relocate.sh \
	tests/core/check-serial.sh \
	tests/serving/ray.sh \
	tests/serving/soak.sh \
	tests/serving/triton-server.sh \
	tests/serving/triton-two.sh \
	tests/tools/options.sh \
	tests/tools/order.sh \
	tests/tools/same_plan.sh \
	tests/tools/terminal.sh \
	tests/tools/values.sh
TESTS += $(SHELL_TESTS)
dist_check_SCRIPTS += $(SHELL_TESTS)
check_PROGRAMS += bench/serving/soak
EXTRA_DIST += scripts/models_to_onnx.py
EXTRA_DIST += tests/python/stubtest.txt tests/python/run.py tests/python/support.py tests/python/test_call.py \
	tests/python/test_cuda.py tests/python/test_docs.py \
	tests/python/test_exchange.py tests/python/test_layer.py tests/python/test_package.py \
	tests/python/test_session.py tests/python/test_stack.py tests/python/test_submit.py
EXTRA_DIST += tests/serving/load.py tests/serving/server.sh tests/tools/overlap.awk
EXTRA_DIST += tests/tap.sh tests/support/timed.sh tests/installed.sh tests/layering.py \
	tests/README.md

if HAVE_CRITERION
# A test is tests/ROOM/UNIT.c and a line in its room's local.mk; helpers of its own get a
# _SOURCES line.
CRITERION_TESTS =
include $(srcdir)/tests/api/local.mk
include $(srcdir)/tests/calibrate/local.mk
include $(srcdir)/tests/check/local.mk
include $(srcdir)/tests/core/local.mk
include $(srcdir)/tests/cuda/local.mk
include $(srcdir)/tests/engine/local.mk
include $(srcdir)/tests/formats/local.mk
include $(srcdir)/tests/ini/local.mk
include $(srcdir)/tests/io/local.mk
include $(srcdir)/tests/language/local.mk
include $(srcdir)/tests/layers/local.mk
include $(srcdir)/tests/network/local.mk
include $(srcdir)/tests/planner/local.mk
include $(srcdir)/tests/registry/local.mk
include $(srcdir)/tests/serving/local.mk
include $(srcdir)/tests/tools/local.mk
check_PROGRAMS += $(CRITERION_TESTS)

# A module of layers for tests/cuda/chain.c, built here because it has kernels.
if HAVE_CUDA
check_LTLIBRARIES += tests/cuda_trial.la
tests_cuda_trial_la_SOURCES = tests/modules/cuda_trial.c tests/modules/cuda_trial.h
tests_cuda_trial_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_trial_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS) -rpath $(abs_builddir)/tests/.libs
tests_cuda_trial_la_LIBADD = tests/modules/cuda_trial_kernels.lo $(CUDA_LIBS)

# Preloaded under compute-sanitizer.
check_LTLIBRARIES += tests/launch_count.la
tests_launch_count_la_SOURCES = tests/cuda/launch_count.c tests/cuda/runtime.h
tests_launch_count_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_launch_count_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS) -rpath $(abs_builddir)/tests/.libs
tests_launch_count_la_LIBADD = $(CUDA_LIBS) $(DL_LIBS)
# Layers with a fault each, for tests/cuda/check.
check_LTLIBRARIES += tests/cuda_faulty.la
tests_cuda_faulty_la_SOURCES =
tests_cuda_faulty_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS) -rpath $(abs_builddir)/tests/.libs
tests_cuda_faulty_la_LIBADD = tests/faulty/cuda.lo $(CUDA_LIBS)
endif
TESTS += $(CRITERION_TESTS)
endif

# Modules that tests compile themselves, and what they are compared with.
EXTRA_DIST += tests/abi/golden-offsets.txt tests/abi/plugin-1.abi \
	tests/abi/plugin-1.0.c tests/abi/plugin-1.0-x86_64.so tests/abi/surface.c \
	tests/support/scratch.h tests/broken/build.h tests/broken/folders.h tests/broken/hidden.map \
	tests/broken/constructor.c tests/broken/entry.c tests/broken/extends.c \
	tests/broken/large.c tests/broken/layer.c tests/broken/library.c tests/broken/no_note.c \
	tests/broken/program.c tests/broken/tls.c tests/broken/undefined.c

# The malformed INI files, and the layers that read them.
EXTRA_DIST += tests/data/bad-ini tests/data/decoder tests/modules/test_layers.c \
	tests/modules/batch_layers.c tests/modules/size_layers.c tests/modules/far_layers.c \
	tests/modules/later_device.c tests/modules/later_layers.c \
	tests/modules/later_memory.c tests/modules/later_memory.h \
	tests/modules/neighbour_layers.c tests/modules/tight_layers.c tests/modules/adding_layers.c \
	tests/modules/timed_layers.c tests/modules/cuda_trial.c tests/modules/cuda_trial.h \
	tests/modules/cuda_trial_kernels.cu tests/faulty/cuda.cu \
	tests/faulty/command.h tests/faulty/layer.c tests/faulty/packed.c tests/faulty/throws.cc
