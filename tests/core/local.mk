CRITERION_TESTS += \
	tests/core/device \
	tests/core/installed \
	tests/core/status \
	tests/core/tensor
