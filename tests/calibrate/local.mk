CRITERION_TESTS += \
	tests/calibrate/collect \
	tests/calibrate/faults \
	tests/calibrate/histogram \
	tests/calibrate/method \
	tests/calibrate/models \
	tests/calibrate/quantised \
	tests/calibrate/ranges \
	tests/calibrate/scheme
tests_calibrate_collect_SOURCES = tests/calibrate/collect.c tests/calibrate/small_net.h
tests_calibrate_quantised_SOURCES = tests/calibrate/quantised.c \
	tests/calibrate/small_net.h
tests_calibrate_scheme_SOURCES = tests/calibrate/scheme.c tests/calibrate/small_net.h
tests_calibrate_models_SOURCES = tests/calibrate/models.c tests/engine/session.c \
	tests/engine/session.h tests/engine/yolo_boxes.c tests/engine/yolo_boxes.h \
	tests/support/models.c tests/support/models.h
tests_calibrate_faults_SOURCES = tests/calibrate/faults.c tests/support/fault.c \
	tests/support/fault.h
tests_calibrate_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_calibrate_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_calibrate_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
