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
	tests/test_abi \
	tests/test_arena \
	tests/test_batch \
	tests/test_batcher \
	tests/test_check \
	tests/test_check_cuda \
	tests/test_check_report \
	tests/test_config \
	tests/test_config_limits \
	tests/test_config_values \
	tests/test_context_check \
	tests/test_cost \
	tests/test_cost_file \
	tests/test_cuda_batch \
	tests/test_cuda_context \
	tests/test_cuda_device \
	tests/test_cuda_layers \
	tests/test_cuda_network \
	tests/test_cuda_reformat \
	tests/test_descriptor \
	tests/test_device \
	tests/test_drawing \
	tests/test_engine \
	tests/test_engine_faults \
	tests/test_engine_file \
	tests/test_engine_refusal \
	tests/test_engine_save \
	tests/test_example_plugins \
	tests/test_explain \
	tests/test_explain_network \
	tests/test_faults \
	tests/test_file \
	tests/test_file_write \
	tests/test_format \
	tests/test_fuse \
	tests/test_image \
	tests/test_image_tensor \
	tests/test_kernels \
	tests/test_layer_values \
	tests/test_layers \
	tests/test_linear \
	tests/test_models \
	tests/test_module \
	tests/test_nets \
	tests/test_network \
	tests/test_network_options \
	tests/test_network_weights \
	tests/test_note \
	tests/test_npy \
	tests/test_objective \
	tests/test_onnx_cases \
	tests/test_plan \
	tests/test_plan_constraints \
	tests/test_random_networks \
	tests/test_plan_exact \
	tests/test_plan_laws \
	tests/test_profiler \
	tests/test_reformat \
	tests/test_reformat_slab \
	tests/test_reformat_values \
	tests/test_registry \
	tests/test_same_plan \
	tests/test_schedule \
	tests/test_search \
	tests/test_status \
	tests/test_tensor \
	tests/test_threads \
	tests/test_weights \
	tests/test_weights_convert \
	tests/test_weights_malformed
# The built-in layers' cases for the layer test, check/.
LAYER_CASES = tests/layer_cases.h tests/layer_cases_f.c tests/layer_cases_w.c
tests_test_config_SOURCES = tests/test_config.c tests/config_text.h
tests_test_config_limits_SOURCES = tests/test_config_limits.c tests/config_text.h
tests_test_config_values_SOURCES = tests/test_config_values.c tests/config_text.h
tests_test_cost_SOURCES = tests/test_cost.c tests/engine_session.h
tests_test_engine_SOURCES = tests/test_engine.c tests/engine_session.h
tests_test_file_SOURCES = tests/test_file.c tests/file_tree.h
tests_test_file_write_SOURCES = tests/test_file_write.c tests/file_tree.h
tests_test_fuse_SOURCES = tests/test_fuse.c tests/engine_session.h
tests_test_objective_SOURCES = tests/test_objective.c tests/engine_session.h
tests_test_schedule_SOURCES = tests/test_schedule.c tests/engine_session.h
tests_test_explain_SOURCES = tests/test_explain.c tests/plan_draw.c tests/plan_draw.h
tests_test_explain_network_SOURCES = tests/test_explain_network.c tests/engine_session.h
tests_test_explain_network_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_explain_network_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_check_report_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_check_report_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_explain_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_explain_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_objective_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_objective_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_same_plan_SOURCES = tests/test_same_plan.c tests/engine_session.h
tests_test_same_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_same_plan_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_batch_SOURCES = tests/test_batch.c tests/batch_net.h
tests_test_batcher_SOURCES = tests/test_batcher.c tests/batch_net.h
tests_test_cuda_batch_SOURCES = tests/test_cuda_batch.c tests/batch_net.h \
	tests/cuda_device.h
tests_test_cuda_device_SOURCES = tests/test_cuda_device.c tests/cuda_device.h
tests_test_cuda_layers_SOURCES = tests/test_cuda_layers.c tests/cuda_device.h \
	tests/layer_cases_large.c $(LAYER_CASES)
tests_test_cuda_context_SOURCES = tests/test_cuda_context.c tests/cuda_chain.c \
	tests/cuda_chain.h tests/cuda_device.h
tests_test_cuda_network_SOURCES = tests/test_cuda_network.c tests/cuda_chain.c \
	tests/cuda_chain.h tests/cuda_device.h
tests_test_reformat_slab_SOURCES = tests/test_reformat_slab.c \
	kernels/reformat.c $(REFORMAT_MAKERS)
tests_test_cuda_reformat_SOURCES = tests/test_cuda_reformat.c tests/cuda_device.h
tests_test_engine_faults_SOURCES = tests/test_engine_faults.c tests/engine_session.h
tests_test_engine_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_engine_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_engine_refusal_SOURCES = tests/test_engine_refusal.c tests/engine_saved.h \
	tests/engine_session.h
tests_test_engine_refusal_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_engine_refusal_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_engine_save_SOURCES = tests/test_engine_save.c tests/engine_saved.h \
	tests/engine_session.h
tests_test_engine_save_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_engine_save_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_example_plugins_SOURCES = tests/test_example_plugins.c tests/cuda_device.h
tests_test_faults_SOURCES = tests/test_faults.c tests/fault.c tests/fault.h \
	tests/batch_net.h
tests_test_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_test_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
FAULT_WRAPS = \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free \
	-Wl,--wrap=strndup,--wrap=open_memstream,--wrap=open,--wrap=openat,--wrap=read,--wrap=pread \
	-Wl,--wrap=write,--wrap=close,--wrap=fstat,--wrap=stat,--wrap=lstat \
	-Wl,--wrap=fsync,--wrap=rename
tests_test_image_CPPFLAGS = $(AM_CPPFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
tests_test_layers_SOURCES = tests/test_layers.c $(LAYER_CASES)
tests_test_models_SOURCES = tests/test_models.c tests/session.c tests/session.h \
	tests/yolo_boxes.c tests/yolo_boxes.h
tests_test_network_SOURCES = tests/test_network.c tests/network_text.h
tests_test_network_options_SOURCES = tests/test_network_options.c tests/network_text.h
tests_test_network_weights_SOURCES = tests/test_network_weights.c tests/network_text.h
tests_test_npy_SOURCES = tests/test_npy.c tests/weights_files.h tests/weights_refusal.h
tests_test_onnx_cases_SOURCES = tests/test_onnx_cases.c tests/onnx_case.c \
	tests/onnx_case.h
tests_test_plan_constraints_SOURCES = tests/test_plan_constraints.c \
	tests/plan_draw.c tests/plan_draw.h
tests_test_plan_exact_SOURCES = tests/test_plan_exact.c tests/plan_draw.c \
	tests/plan_draw.h
tests_test_plan_laws_SOURCES = tests/test_plan_laws.c tests/plan_draw.c \
	tests/plan_draw.h
tests_test_random_networks_SOURCES = tests/test_random_networks.c tests/network_draw.c \
	tests/network_draw.h
tests_test_note_SOURCES = tests/test_note.c tests/reads.h
tests_test_search_SOURCES = tests/test_search.c tests/reads.h
tests_test_threads_SOURCES = tests/test_threads.c tests/batch_net.h
tests_test_weights_SOURCES = tests/test_weights.c tests/weights_files.h
tests_test_weights_malformed_SOURCES = tests/test_weights_malformed.c \
	tests/weights_refusal.h
# What reads INI files, with its steps counted; see tests/steps.h.
check_LTLIBRARIES += tests/libcounted.la
tests_libcounted_la_SOURCES = core/config.c core/config_error.c core/config_header.c \
	core/config_line.c core/config_list.c core/config_override.c core/config_reader.c \
	core/config_scan.c core/config_value.c core/config_vars.c core/network.c \
	core/network_batch.c core/network_graph.c core/network_input.c \
	core/network_layers.c core/network_sections.c core/network_shapes.c \
	core/network_weights.c core/attributes.c core/status.c
tests_libcounted_la_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) -DCOUNT_STEPS \
	-include $(top_srcdir)/tests/steps.h
tests_libcounted_la_CFLAGS = $(AM_CFLAGS) $(COUNTING_CFLAGS)
tests_test_linear_SOURCES = tests/test_linear.c tests/config_text.h tests/network_text.h \
	tests/steps.h
tests_test_linear_LDADD = tests/libcounted.la $(LDADD)
if HAVE_DNNL
CRITERION_TESTS += tests/test_onednn
tests_test_onednn_SOURCES = tests/test_onednn.c tests/onednn_problems.c \
	tests/onednn_problems.h tests/onednn_trial.c tests/onednn_trial.h
endif
if HAVE_CUDNN
CRITERION_TESTS += tests/test_cudnn
tests_test_cudnn_SOURCES = tests/test_cudnn.c plugins/cudnn_choice.c plugins/cudnn_graph.c
tests_test_cudnn_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_test_cudnn_LDADD = $(LDADD) $(CUDA_LDFLAGS) -lcudnn $(PTHREAD_LIBS)
endif
if HAVE_CUDA
CRITERION_TESTS += tests/test_cuda_faults
tests_test_cuda_faults_SOURCES = tests/test_cuda_faults.c tests/cuda_fault.c \
	tests/cuda_fault.h tests/cuda_runtime.h tests/batch_net.h tests/cuda_device.h
tests_test_cuda_faults_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_test_cuda_faults_LDADD = $(LDADD) $(DL_LIBS)
tests_test_cuda_faults_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
endif
check_PROGRAMS += $(CRITERION_TESTS)

# A module of layers for tests/cuda_chain.c, built here because it has kernels.
if HAVE_CUDA
check_LTLIBRARIES += tests/cuda_trial.la
tests_cuda_trial_la_SOURCES = tests/plugins/cuda_trial.c tests/plugins/cuda_trial.h
tests_cuda_trial_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_trial_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS) -rpath $(abs_builddir)/tests/.libs
tests_cuda_trial_la_LIBADD = tests/plugins/cuda_trial_kernels.lo $(CUDA_LIBS)

# Preloaded under compute-sanitizer.
check_LTLIBRARIES += tests/launch_count.la
tests_launch_count_la_SOURCES = tests/launch_count.c tests/cuda_runtime.h
tests_launch_count_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_launch_count_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS) -rpath $(abs_builddir)/tests/.libs
tests_launch_count_la_LIBADD = $(CUDA_LIBS) $(DL_LIBS)
# Layers with a fault each, for tests/test_check_cuda.
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
	tests/scratch.h tests/broken/build.h tests/broken/folders.h tests/broken/hidden.map \
	tests/broken/constructor.c tests/broken/entry.c tests/broken/extends.c \
	tests/broken/layer.c tests/broken/library.c tests/broken/no_note.c \
	tests/broken/program.c tests/broken/tls.c tests/broken/undefined.c

# The malformed INI files, and the layers that read them.
EXTRA_DIST += tests/data/bad-ini tests/plugins/test_layers.c \
	tests/plugins/batch_layers.c tests/plugins/timed_layers.c tests/plugins/cuda_trial.c tests/plugins/cuda_trial.h \
	tests/plugins/cuda_trial_kernels.cu tests/faulty/cuda.cu \
	tests/faulty/command.h tests/faulty/layer.c tests/faulty/packed.c tests/faulty/throws.cc
