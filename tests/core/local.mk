CRITERION_TESTS += \
	tests/core/device \
	tests/core/status \
	tests/core/tensor
