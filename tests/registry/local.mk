CRITERION_TESTS += \
	tests/registry/abi \
	tests/registry/descriptor \
	tests/registry/faults \
	tests/registry/given \
	tests/registry/math_mode \
	tests/registry/module \
	tests/registry/note \
	tests/registry/registry \
	tests/registry/search \
	tests/registry/trial
tests_registry_note_SOURCES = tests/registry/note.c tests/support/reads.h
tests_registry_search_SOURCES = tests/registry/search.c tests/support/reads.h
tests_registry_faults_SOURCES = tests/registry/faults.c tests/support/fault.c \
	tests/support/fault.h
tests_registry_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_registry_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_registry_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
