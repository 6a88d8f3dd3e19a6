CRITERION_TESTS += \
	tests/core/crew \
	tests/core/device \
	tests/core/installed \
	tests/core/lead \
	tests/core/status \
	tests/core/tensor
tests_core_crew_SOURCES = tests/core/crew.c tests/core/runs.h
tests_core_lead_SOURCES = tests/core/lead.c tests/core/runs.h
