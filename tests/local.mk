# One program a unit, TAP through Automake's driver.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
	srcdir='$(abs_srcdir)'; export srcdir; \
	builddir='$(abs_builddir)'; export builddir; \
	CC='$(CC)'; export CC; \
	STRATA_PLUGIN_PATH='$(abs_builddir)/plugins/.libs'; export STRATA_PLUGIN_PATH; \
	CRITERION_OUTPUTS=tap:-; export CRITERION_OUTPUTS;

CPPFLAGS_FOR_TESTS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
LDADD_FOR_TESTS = libstrata-internal.la $(CRITERION_LIBS) $(M_LIBS)

if HAVE_CRITERION
CRITERION_TESTS =
check_PROGRAMS += $(CRITERION_TESTS)
TESTS += $(CRITERION_TESTS)

CRITERION_TESTS += tests/test_status
tests_test_status_SOURCES = tests/test_status.c
tests_test_status_CPPFLAGS = $(CPPFLAGS_FOR_TESTS)
tests_test_status_LDADD = $(LDADD_FOR_TESTS)
endif
