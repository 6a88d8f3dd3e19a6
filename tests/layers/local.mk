CRITERION_TESTS += \
	tests/layers/cast \
	tests/layers/claims \
	tests/layers/example_plugins \
	tests/layers/functions \
	tests/layers/kernels \
	tests/layers/layers \
	tests/layers/odd_values \
	tests/layers/onnx_cases \
	tests/layers/pointwise_source \
	tests/layers/rnn_steps \
	tests/layers/team \
	tests/layers/values \
	tests/layers/windows
tests_layers_cast_SOURCES = tests/layers/cast.c tests/formats/reference.h
tests_layers_claims_SOURCES = tests/layers/claims.c tests/planner/costing.h \
	tests/planner/planning.h
tests_layers_example_plugins_SOURCES = tests/layers/example_plugins.c \
	tests/cuda/device.h
# Its own compilation of pointwise/float.c, which is to be the library's.
tests_layers_functions_CFLAGS = $(plugins_common_libpointwise_la_CFLAGS)
tests_layers_functions_LDADD = $(POINTWISE_LIBS) $(LDADD)
tests_layers_kernels_LDADD = $(POINTWISE_LIBS) $(LDADD)
tests_layers_layers_SOURCES = tests/layers/layers.c tests/layers/cases.h \
	$(LAYER_CASES)
tests_layers_onnx_cases_SOURCES = tests/layers/onnx_cases.c tests/layers/onnx_case.c \
	tests/layers/onnx_case.h
tests_layers_pointwise_source_SOURCES = tests/layers/pointwise_source.c \
	plugins/common/pointwise/program.c plugins/common/pointwise/program.h \
	plugins/pointwise/source.c plugins/pointwise/source.h
# As the plugin has it: it is to tell a NaN with the plugin's flags.
tests_layers_rnn_steps_SOURCES = tests/layers/rnn_steps.c plugins/rnn/bytes/count.c \
	plugins/rnn/bytes/digits.c plugins/rnn/host.h
tests_layers_rnn_steps_CFLAGS = $(plugins_rnn_la_CFLAGS)
# As plugins are linked.
tests_layers_team_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=GOMP_parallel
tests_layers_team_LDADD = plugins/common/team/libteam.a $(LDADD)
if HAVE_DNNL
CRITERION_TESTS += tests/layers/onednn
tests_layers_onednn_SOURCES = tests/layers/onednn.c tests/layers/onednn_problems.c \
	tests/layers/onednn_problems.h tests/layers/onednn_trial.c \
	tests/layers/onednn_trial.h
endif
tests_layers_windows_SOURCES = tests/layers/windows.c tests/planner/planning.h
