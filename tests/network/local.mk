CRITERION_TESTS += \
	tests/network/doubt \
	tests/network/faults \
	tests/network/import/carried \
	tests/network/import/upgrades/grouped \
	tests/network/import/inline \
	tests/network/import/layers \
	tests/network/import/models \
	tests/network/import/opsets \
	tests/network/import/order \
	tests/network/import/patterns \
	tests/network/import/regions \
	tests/network/import/branches \
	tests/network/import/upgrades/computed \
	tests/network/import/counted \
	tests/network/import/quantize_tools \
	tests/network/import/any_size/sizes \
	tests/network/import/shared \
	tests/network/import/stable \
	tests/network/import/any_size/steps \
	tests/network/import/any_size/sums \
	tests/network/import/quantized \
	tests/network/import/state \
	tests/network/import/symbols \
	tests/network/import/upgrades/upgrade \
	tests/network/linear \
	tests/network/network \
	tests/network/options \
	tests/network/print \
	tests/network/weights
tests_network_doubt_SOURCES = tests/network/doubt.c tests/network/network_text.h
tests_network_faults_SOURCES = tests/network/faults.c tests/support/fault.c \
	tests/support/fault.h $(IMPORTED_TEXT)
tests_network_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_network_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_network_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
tests_network_import_models_SOURCES = tests/network/import/models.c \
	tests/network/import/planned.h
tests_network_import_patterns_SOURCES = tests/network/import/patterns.c $(PATTERN_CASE)
tests_network_import_regions_SOURCES = tests/network/import/regions.c $(PATTERN_CASE)
PATTERN_CASE = tests/network/import/pattern_case.h tests/network/import/planned.h \
	tests/network/import/statements.h
tests_network_import_layers_SOURCES = tests/network/import/layers.c tests/io/onnx_text.h
tests_network_network_SOURCES = tests/network/network.c tests/network/network_text.h
tests_network_options_SOURCES = tests/network/options.c tests/network/network_text.h
tests_network_print_SOURCES = tests/network/print.c
tests_network_weights_SOURCES = tests/network/weights.c tests/network/network_text.h

tests_network_import_branches_SOURCES = tests/network/import/branches.c $(FREE_MODEL)
tests_network_import_upgrades_computed_SOURCES = \
	tests/network/import/upgrades/computed.c $(FREE_MODEL)
tests_network_import_counted_SOURCES = tests/network/import/counted.c $(FREE_MODEL)
tests_network_import_quantize_tools_SOURCES = tests/network/import/quantize_tools.c $(FREE_MODEL)
tests_network_import_inline_SOURCES = tests/network/import/inline.c $(IMPORTED_TEXT)
tests_network_import_opsets_SOURCES = tests/network/import/opsets.c $(IMPORTED_TEXT)
tests_network_import_any_size_sizes_SOURCES = tests/network/import/any_size/sizes.c \
	tests/network/import/any_size/any_size.h $(FREE_MODEL)
tests_network_import_any_size_steps_SOURCES = tests/network/import/any_size/steps.c \
	tests/network/import/any_size/any_size.h $(FREE_MODEL)
tests_network_import_any_size_sums_SOURCES = tests/network/import/any_size/sums.c \
	tests/network/import/any_size/any_size.h $(FREE_MODEL)
tests_network_import_shared_SOURCES = tests/network/import/shared.c \
	tests/network/import/any_size/any_size.h $(FREE_MODEL)
tests_network_import_symbols_SOURCES = tests/network/import/symbols.c $(FREE_MODEL)
FREE_MODEL = tests/network/import/free_model.h tests/network/import/planned.h \
	tests/network/import/model_text.h
tests_network_import_stable_SOURCES = tests/network/import/stable.c \
	tests/network/import/model_text.h
IMPORTED_TEXT = tests/network/import/imported.h tests/network/import/model_text.h
tests_network_import_carried_SOURCES = tests/network/import/carried.c $(IMPORTED_TEXT)
tests_network_import_quantized_SOURCES = tests/network/import/quantized.c $(IMPORTED_TEXT)
tests_network_import_upgrades_grouped_SOURCES = \
	tests/network/import/upgrades/grouped.c $(IMPORTED_TEXT)
tests_network_import_state_SOURCES = tests/network/import/state.c $(IMPORTED_TEXT)

# What reads INI files, with its steps counted; see steps.h.
check_LTLIBRARIES += tests/libcounted.la
tests_libcounted_la_SOURCES = $(INI_SOURCES) $(NETWORK_SOURCES) core/alloc.c \
	core/status.c core/text.c
tests_libcounted_la_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) -DCOUNT_STEPS \
	-include $(top_srcdir)/tests/network/steps.h
tests_libcounted_la_CFLAGS = $(AM_CFLAGS) $(COUNTING_CFLAGS)
tests_network_linear_SOURCES = tests/network/linear.c tests/network/steps.h \
	tests/network/network_text.h tests/ini/config_text.h
tests_network_linear_LDADD = tests/libcounted.la $(LDADD)

# Prints TAP itself: a line a case.
check_PROGRAMS += tests/network/import/onnx_cases
TESTS += tests/network/import/onnx_cases
tests_network_import_onnx_cases_SOURCES = tests/network/import/onnx_cases.c
EXTRA_DIST += tests/network/import/onnx_left_out.txt
EXTRA_DIST += tests/network/import/schema_history.txt scripts/onnx_history.py

# Over the node cases of PyPI's onnx, which hold more than Debian's.
onnx-conformance: all tests/network/import/onnx_cases
	$(AM_TESTS_ENVIRONMENT) '$(srcdir)/scripts/onnx-conformance.sh' \
		'$(abs_builddir)' '$(abs_srcdir)/docs/onnx/conformance.md'
EXTRA_DIST += scripts/onnx-conformance.sh
