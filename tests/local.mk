# One program a unit, TAP through Automake's driver.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
	srcdir='$(abs_srcdir)'; export srcdir; \
	builddir='$(abs_builddir)'; export builddir; \
	CC='$(CC)'; export CC; \
	STRATA_DEVICE_PATH='$(abs_builddir)/kernels/.libs'; export STRATA_DEVICE_PATH; \
	STRATA_TEST_MODULES='$(abs_builddir)/tests/.libs'; export STRATA_TEST_MODULES; \
	SANITIZER_CFLAGS='$(SANITIZER_CFLAGS)'; export SANITIZER_CFLAGS; \
	MAKE='$(MAKE)'; export MAKE; \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	STRATA_PLUGIN_DIR='$(abs_builddir)/plugins/.libs'; export STRATA_PLUGIN_DIR; \
	STRATA_PLUGIN_PATH="$$STRATA_PLUGIN_DIR"; export STRATA_PLUGIN_PATH; \
	LSAN_OPTIONS='suppressions=$(abs_srcdir)/tests/lsan.supp:print_suppressions=0:use_tls=0'; \
	export LSAN_OPTIONS; \
	CRITERION_OUTPUTS=tap:-; export CRITERION_OUTPUTS;

EXTRA_DIST += tests/plain/criterion/criterion.h tests/lsan.supp
LDADD = libstrata-check.la libstrata-internal.la $(CRITERION_LIBS) $(M_LIBS)

SHELL_TESTS = \
	tests/check-abi.sh \
	tests/check-command.sh \
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
	tests/check-locale.sh \
	tests/check-measure.sh \
	tests/check-new-layer.sh \
	tests/check-plugins.sh
TESTS += $(SHELL_TESTS)
dist_check_SCRIPTS += $(SHELL_TESTS)
EXTRA_DIST += tests/tap.sh tests/installed.sh

if HAVE_CRITERION
# A test is tests/test_UNIT.c and a line here; helpers of its own get a _SOURCES line.
CRITERION_TESTS = \
	tests/registry/abi \
	tests/planner/arena \
	tests/engine/batch \
	tests/engine/batcher \
	tests/check/check \
	tests/cuda/check \
	tests/check/report \
	tests/ini/config \
	tests/ini/limits \
	tests/ini/values \
	tests/engine/context_check \
	tests/planner/cost \
	tests/planner/cost_file \
	tests/cuda/batch \
	tests/cuda/context \
	tests/cuda/device \
	tests/cuda/layers \
	tests/cuda/network \
	tests/cuda/reformat \
	tests/registry/descriptor \
	tests/core/device \
	tests/tools/drawing \
	tests/engine/engine \
	tests/engine/file_faults \
	tests/io/engine_file \
	tests/engine/refusal \
	tests/engine/save \
	tests/layers/example_plugins \
	tests/planner/explain \
	tests/planner/explain_network \
	tests/engine/faults \
	tests/io/file \
	tests/io/file_write \
	tests/formats/format \
	tests/planner/fuse \
	tests/io/image \
	tests/io/image_tensor \
	tests/layers/kernels \
	tests/layers/values \
	tests/layers/layers \
	tests/engine/models \
	tests/registry/module \
	tests/planner/nets \
	tests/network/network \
	tests/network/options \
	tests/network/weights \
	tests/registry/note \
	tests/io/npy \
	tests/planner/objective \
	tests/planner/planner \
	tests/layers/onnx_cases \
	tests/planner/solver/plan \
	tests/planner/solver/constraints \
	tests/engine/random_networks \
	tests/planner/solver/exact \
	tests/planner/solver/laws \
	tests/tools/profiler \
	tests/formats/reformat \
	tests/formats/reformat_slab \
	tests/formats/reformat_values \
	tests/registry/registry \
	tests/planner/same_plan \
	tests/planner/schedule \
	tests/registry/search \
	tests/core/status \
	tests/core/tensor \
	tests/engine/threads \
	tests/io/weights \
	tests/io/weights_convert \
	tests/io/weights_malformed
# The built-in layers' cases for the layer test, check/.
LAYER_CASES = tests/layers/layer_cases.h tests/layers/layer_cases_f.c tests/layers/layer_cases_w.c
tests_ini_config_SOURCES = tests/ini/config.c tests/ini/config_text.h
tests_ini_limits_SOURCES = tests/ini/limits.c tests/ini/config_text.h \
	tests/support/large_text.h
tests_ini_values_SOURCES = tests/ini/values.c tests/ini/config_text.h
tests_planner_cost_SOURCES = tests/planner/cost.c tests/planner/planning.h
tests_engine_engine_SOURCES = tests/engine/engine.c tests/engine/engine_session.h
tests_io_file_SOURCES = tests/io/file.c tests/support/file_tree.h
tests_io_file_write_SOURCES = tests/io/file_write.c tests/support/file_tree.h
tests_planner_fuse_SOURCES = tests/planner/fuse.c tests/engine/engine_session.h \
	tests/planner/planning.h
tests_planner_objective_SOURCES = tests/planner/objective.c tests/planner/planning.h
tests_planner_schedule_SOURCES = tests/planner/schedule.c tests/planner/planning.h
tests_planner_explain_SOURCES = tests/planner/explain.c tests/planner/solver/draw.c tests/planner/solver/draw.h
tests_planner_explain_network_SOURCES = tests/planner/explain_network.c tests/planner/planning.h
tests_planner_explain_network_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_explain_network_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_check_report_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_check_report_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_explain_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_explain_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_objective_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_objective_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_planner_SOURCES = tests/planner/planner.c tests/planner/planning.h
tests_planner_planner_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_planner_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_same_plan_SOURCES = tests/planner/same_plan.c tests/planner/planning.h
tests_planner_same_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_same_plan_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_batch_SOURCES = tests/engine/batch.c tests/engine/batch_net.h
tests_engine_batcher_SOURCES = tests/engine/batcher.c tests/engine/batch_net.h
tests_cuda_batch_SOURCES = tests/cuda/batch.c tests/engine/batch_net.h \
	tests/cuda/device.h
tests_cuda_device_SOURCES = tests/cuda/device.c tests/cuda/device.h
tests_cuda_layers_SOURCES = tests/cuda/layers.c tests/cuda/device.h \
	tests/layers/layer_cases_large.c $(LAYER_CASES)
tests_cuda_context_SOURCES = tests/cuda/context.c tests/cuda/chain.c \
	tests/cuda/chain.h tests/cuda/device.h
tests_cuda_network_SOURCES = tests/cuda/network.c tests/cuda/chain.c \
	tests/cuda/chain.h tests/cuda/device.h
tests_formats_reformat_slab_SOURCES = tests/formats/reformat_slab.c \
	kernels/reformat/reformat.c $(REFORMAT_MAKERS)
tests_cuda_reformat_SOURCES = tests/cuda/reformat.c tests/cuda/device.h
tests_engine_file_faults_SOURCES = tests/engine/file_faults.c tests/engine/engine_session.h
tests_engine_file_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_file_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_refusal_SOURCES = tests/engine/refusal.c tests/engine/engine_saved.h \
	tests/engine/engine_session.h
tests_engine_refusal_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_refusal_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_save_SOURCES = tests/engine/save.c tests/engine/engine_saved.h \
	tests/engine/engine_session.h
tests_engine_save_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_save_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_layers_example_plugins_SOURCES = tests/layers/example_plugins.c tests/cuda/device.h
tests_engine_faults_SOURCES = tests/engine/faults.c tests/support/fault.c tests/support/fault.h \
	tests/engine/batch_net.h
tests_engine_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
FAULT_WRAPS = \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free \
	-Wl,--wrap=strndup,--wrap=open_memstream,--wrap=open,--wrap=openat,--wrap=read,--wrap=pread \
	-Wl,--wrap=write,--wrap=close,--wrap=fstat,--wrap=stat,--wrap=lstat \
	-Wl,--wrap=fsync,--wrap=rename
tests_io_image_CPPFLAGS = $(AM_CPPFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
tests_layers_layers_SOURCES = tests/layers/layers.c $(LAYER_CASES)
tests_engine_models_SOURCES = tests/engine/models.c tests/engine/session.c tests/engine/session.h \
	tests/engine/yolo_boxes.c tests/engine/yolo_boxes.h
tests_network_network_SOURCES = tests/network/network.c tests/support/large_text.h \
	tests/network/network_text.h
tests_network_options_SOURCES = tests/network/options.c tests/network/network_text.h
tests_network_weights_SOURCES = tests/network/weights.c tests/network/network_text.h
tests_io_npy_SOURCES = tests/io/npy.c tests/io/weights_files.h tests/io/weights_refusal.h
tests_layers_onnx_cases_SOURCES = tests/layers/onnx_cases.c tests/layers/onnx_case.c \
	tests/layers/onnx_case.h
tests_planner_solver_constraints_SOURCES = tests/planner/solver/constraints.c \
	tests/planner/solver/draw.c tests/planner/solver/draw.h
tests_planner_solver_exact_SOURCES = tests/planner/solver/exact.c tests/planner/solver/draw.c \
	tests/planner/solver/draw.h
tests_planner_solver_laws_SOURCES = tests/planner/solver/laws.c tests/planner/solver/draw.c \
	tests/planner/solver/draw.h
tests_engine_random_networks_SOURCES = tests/engine/random_networks.c tests/engine/network_draw.c \
	tests/engine/network_draw.h
tests_engine_threads_SOURCES = tests/engine/threads.c tests/engine/batch_net.h
tests_io_weights_SOURCES = tests/io/weights.c tests/io/weights_files.h
tests_io_weights_malformed_SOURCES = tests/io/weights_malformed.c \
	tests/io/weights_refusal.h
if HAVE_DNNL
CRITERION_TESTS += tests/layers/onednn
tests_layers_onednn_SOURCES = tests/layers/onednn.c tests/layers/onednn_problems.c \
	tests/layers/onednn_problems.h tests/layers/onednn_trial.c tests/layers/onednn_trial.h
endif
if HAVE_CUDNN
CRITERION_TESTS += tests/cuda/cudnn
tests_cuda_cudnn_SOURCES = tests/cuda/cudnn.c plugins/convolution/cudnn/choice.c plugins/convolution/cudnn/graph.c
tests_cuda_cudnn_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_cudnn_LDADD = $(LDADD) $(CUDA_LDFLAGS) -lcudnn $(PTHREAD_LIBS)
endif
if HAVE_CUDA
CRITERION_TESTS += tests/cuda/faults
tests_cuda_faults_SOURCES = tests/cuda/faults.c tests/cuda/fault.c \
	tests/cuda/fault.h tests/cuda/runtime.h tests/engine/batch_net.h tests/cuda/device.h
tests_cuda_faults_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_faults_LDADD = $(LDADD) $(DL_LIBS)
tests_cuda_faults_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
endif
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
	tests/broken/layer.c tests/broken/library.c tests/broken/no_note.c \
	tests/broken/program.c tests/broken/tls.c tests/broken/undefined.c

# The malformed INI files, and the layers that read them.
EXTRA_DIST += tests/data/bad-ini tests/modules/test_layers.c \
	tests/modules/batch_layers.c tests/modules/far_layers.c \
	tests/modules/timed_layers.c tests/modules/cuda_trial.c tests/modules/cuda_trial.h \
	tests/modules/cuda_trial_kernels.cu tests/faulty/cuda.cu \
	tests/faulty/command.h tests/faulty/layer.c tests/faulty/packed.c tests/faulty/throws.cc
