CRITERION_TESTS += \
	tests/calibrate/histogram \
	tests/calibrate/method \
	tests/calibrate/models \
	tests/calibrate/quantised \
	tests/calibrate/ranges
tests_calibrate_models_SOURCES = tests/calibrate/models.c tests/engine/session.c \
	tests/engine/session.h tests/engine/yolo_boxes.c tests/engine/yolo_boxes.h \
	tests/support/models.c tests/support/models.h
