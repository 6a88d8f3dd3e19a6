CRITERION_TESTS += \
	tests/check/check \
	tests/check/numbers \
	tests/check/report
tests_check_report_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_check_report_LDADD = $(LDADD) $(JANSSON_LIBS)
