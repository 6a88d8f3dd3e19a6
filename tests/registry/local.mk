CRITERION_TESTS += \
	tests/registry/abi \
	tests/registry/descriptor \
	tests/registry/given \
	tests/registry/math_mode \
	tests/registry/module \
	tests/registry/note \
	tests/registry/registry \
	tests/registry/search \
	tests/registry/trial
tests_registry_note_SOURCES = tests/registry/note.c tests/support/reads.h
tests_registry_search_SOURCES = tests/registry/search.c tests/support/reads.h
