CRITERION_TESTS += \
	tests/tools/drawing \
	tests/tools/profiler
