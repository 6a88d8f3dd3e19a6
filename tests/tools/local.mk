CRITERION_TESTS += \
	tests/tools/drawing \
	tests/tools/in_place \
	tests/tools/profiler
