CRITERION_TESTS += \
	tests/tools/drawing \
	tests/tools/in_place \
	tests/tools/profiler

# The command itself, with allocations that fail; its own malloc would be in front of them.
CRITERION_TESTS += tests/tools/faults
tests_tools_faults_SOURCES = tests/tools/faults.c tests/support/fault.c \
	tests/support/fault.h tests/network/import/model_text.h
tests_tools_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
TOOL_OBJECTS = $(filter-out %-main.$(OBJEXT) %-allocation.$(OBJEXT),$(strata_OBJECTS))
tests_tools_faults_LDADD = $(TOOL_OBJECTS) $(strata_LDADD) $(CRITERION_LIBS)
tests_tools_faults_DEPENDENCIES = $(strata_OBJECTS) libstrata-check.la \
	libstrata-calibrate.la libstrata-language.la libstrata-internal.la
tests_tools_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
