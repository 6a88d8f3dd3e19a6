CRITERION_TESTS += \
	tests/engine/batch \
	tests/engine/batcher \
	tests/engine/devices/batcher \
	tests/engine/memory/constants \
	tests/engine/context_check \
	tests/engine/decoder/decoder \
	tests/engine/engine \
	tests/engine/faults \
	tests/engine/file_faults \
	tests/engine/quantized/few_bits \
	tests/engine/quantized/fold \
	tests/engine/quantized/mixed \
	tests/engine/quantized/weights \
	tests/engine/quantized/zero_points \
	tests/engine/math/mode \
	tests/engine/models \
	tests/engine/pads \
	tests/engine/parts \
	tests/engine/random_networks \
	tests/engine/measure/interrupt \
	tests/engine/refusal \
	tests/engine/save \
	tests/engine/sizes/batch \
	tests/engine/sizes/budget \
	tests/engine/sizes/shapes \
	tests/engine/sizes/steps \
	tests/engine/sizes/sums \
	tests/engine/sizes/versions \
	tests/engine/devices/copies \
	tests/engine/devices/mixture \
	tests/engine/devices/staging \
	tests/engine/devices/trials \
	tests/engine/devices/turns \
	tests/engine/state \
	tests/engine/teams \
	tests/engine/threads
tests_engine_batch_SOURCES = tests/engine/batch.c tests/engine/batch_net.h
tests_engine_sizes_batch_SOURCES = tests/engine/sizes/batch.c \
	tests/engine/sizes/sizes_net.h \
	tests/engine/batch_net.h
tests_engine_sizes_budget_SOURCES = tests/engine/sizes/budget.c \
	tests/engine/batch_net.h
tests_engine_sizes_budget_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_sizes_budget_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_sizes_shapes_SOURCES = tests/engine/sizes/shapes.c \
	tests/engine/sizes/sizes_net.h \
	tests/engine/batch_net.h
tests_engine_sizes_steps_SOURCES = tests/engine/sizes/steps.c \
	tests/engine/sizes/sizes_net.h \
	tests/engine/batch_net.h
tests_engine_sizes_sums_SOURCES = tests/engine/sizes/sums.c \
	tests/engine/sizes/sizes_net.h \
	tests/engine/batch_net.h
tests_engine_sizes_versions_SOURCES = tests/engine/sizes/versions.c \
	tests/engine/sizes/sizes_net.h \
	tests/engine/batch_net.h
tests_engine_state_SOURCES = tests/engine/state.c tests/engine/batch_net.h
tests_engine_teams_SOURCES = tests/engine/teams.c tests/engine/batch_net.h
tests_engine_decoder_decoder_SOURCES = tests/engine/decoder/decoder.c \
	tests/engine/decoder/stories.h \
	tests/engine/batch_net.h
tests_engine_batcher_SOURCES = tests/engine/batcher.c tests/engine/batch_net.h
tests_engine_devices_batcher_SOURCES = tests/engine/devices/batcher.c tests/engine/batch_net.h
tests_engine_engine_SOURCES = tests/engine/engine.c tests/engine/engine_session.h
tests_engine_faults_SOURCES = tests/engine/faults.c tests/support/fault.c \
	tests/support/fault.h tests/engine/batch_net.h
tests_engine_devices_trials_SOURCES = tests/engine/devices/trials.c tests/support/graphs.h \
	tests/support/fault.c tests/support/fault.h
tests_engine_devices_trials_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_devices_trials_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_devices_trials_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
tests_engine_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
tests_engine_file_faults_SOURCES = tests/engine/file_faults.c \
	tests/engine/engine_session.h
tests_engine_file_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_file_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_quantized_fold_SOURCES = tests/engine/quantized/fold.c \
	tests/engine/engine_saved.h tests/engine/engine_session.h
tests_engine_quantized_fold_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_quantized_fold_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_devices_mixture_SOURCES = tests/engine/devices/mixture.c \
	tests/engine/devices/played.h tests/support/graphs.h tests/engine/quantized/mixed_net.h \
	tests/engine/engine_saved.h tests/engine/engine_session.h
tests_engine_devices_mixture_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_devices_mixture_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_quantized_mixed_SOURCES = tests/engine/quantized/mixed.c \
	tests/engine/quantized/mixed_net.h \
	tests/engine/engine_saved.h tests/engine/engine_session.h
tests_engine_quantized_mixed_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_quantized_mixed_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_quantized_few_bits_SOURCES = tests/engine/quantized/few_bits.c \
	tests/engine/engine_saved.h tests/engine/engine_session.h
tests_engine_quantized_few_bits_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_quantized_few_bits_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_quantized_weights_SOURCES = tests/engine/quantized/weights.c \
	tests/engine/engine_saved.h tests/engine/engine_session.h
tests_engine_quantized_weights_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_quantized_weights_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_quantized_zero_points_SOURCES = tests/engine/quantized/zero_points.c \
	tests/network/import/planned.h tests/network/import/model_text.h
tests_engine_models_SOURCES = tests/engine/models.c tests/engine/session.c \
	tests/engine/session.h tests/engine/yolo_boxes.c tests/engine/yolo_boxes.h \
	tests/support/models.c tests/support/models.h
tests_engine_math_mode_SOURCES = tests/engine/math/mode.c \
	tests/engine/engine_session.h
tests_engine_measure_interrupt_SOURCES = tests/engine/measure/interrupt.c \
	tests/engine/engine_session.h
tests_engine_memory_constants_SOURCES = tests/engine/memory/constants.c \
	tests/engine/engine_session.h
tests_engine_pads_SOURCES = tests/engine/pads.c tests/engine/engine_session.h
tests_engine_parts_SOURCES = tests/engine/parts.c tests/engine/batch_net.h
tests_engine_random_networks_SOURCES = tests/engine/random_networks.c \
	tests/engine/network_draw.c tests/engine/network_draw.h
tests_engine_random_networks_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=cost_of_run,--wrap=cost_of_reformat
tests_engine_refusal_SOURCES = tests/engine/refusal.c tests/engine/engine_saved.h \
	tests/engine/engine_session.h
tests_engine_refusal_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_refusal_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_save_SOURCES = tests/engine/save.c tests/engine/engine_saved.h \
	tests/engine/engine_session.h
tests_engine_save_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_engine_save_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_engine_threads_SOURCES = tests/engine/threads.c tests/engine/batch_net.h
FAULT_WRAPS = \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free \
	-Wl,--wrap=strndup,--wrap=vasprintf,--wrap=asprintf,--wrap=realpath \
	-Wl,--wrap=fopencookie,--wrap=open,--wrap=openat \
	-Wl,--wrap=read,--wrap=pread \
	-Wl,--wrap=write,--wrap=close,--wrap=fstat,--wrap=stat,--wrap=lstat \
	-Wl,--wrap=fsync,--wrap=rename
