CRITERION_TESTS += \
	tests/calibrate/histogram \
	tests/calibrate/method \
	tests/calibrate/ranges
