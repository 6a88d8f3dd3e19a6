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

LDADD = libstrata-internal.la $(CRITERION_LIBS) $(M_LIBS)

TESTS += tests/check-layering.sh
dist_check_SCRIPTS += tests/check-layering.sh

if HAVE_CRITERION
# A test is tests/test_UNIT.c and a line here; helpers of its own get a _SOURCES line.
CRITERION_TESTS = \
	tests/test_arena \
	tests/test_device \
	tests/test_plan \
	tests/test_status
check_PROGRAMS += $(CRITERION_TESTS)
TESTS += $(CRITERION_TESTS)
endif
