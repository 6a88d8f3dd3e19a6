CRITERION_TESTS += \
	tests/core/crew \
	tests/core/device \
	tests/core/installed \
	tests/core/status \
	tests/core/tensor
