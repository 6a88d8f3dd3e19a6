# The layer test: what `strata check` and the layers' own tests share.
noinst_LTLIBRARIES += libstrata-check.la
libstrata_check_la_SOURCES = \
	check/test/again.c \
	check/test/attributes.c \
	check/cases.c \
	check/cases.h \
	check/check.c \
	check/check.h \
	check/child.c \
	check/child.h \
	check/environment.c \
	check/environment.h \
	check/test/concurrency.c \
	check/test/errors.c \
	check/harness/harness.h \
	check/harness/run.c \
	check/test/load.c \
	check/harness/memory.c \
	check/harness/memory.h \
	check/model/data_set.c \
	check/model/data_set.h \
	check/harness/mirror.c \
	check/harness/mirror.h \
	check/module_range.c \
	check/module_range.h \
	check/harness/node.c \
	check/harness/number.c \
	check/harness/number.h \
	check/own.c \
	check/test/repeat.c \
	check/test/results.c \
	check/test/results.h \
	check/rules.c \
	check/rules.h \
	check/harness/session.c \
	check/harness/session.h \
	check/harness/session_make.c \
	check/harness/session_private.h \
	check/shape_text.c \
	check/test/shapes.c \
	check/shrink.c \
	check/shrink.h \
	check/test/streams.c \
	check/test/sweep.c \
	check/test/sweep_shapes.c \
	check/test/sweep_shapes.h \
	check/test/test.c \
	check/test/test.h \
	check/types.c \
	check/harness/stored.c \
	check/harness/stored.h \
	check/harness/trial.c check/harness/trial_define.c \
	check/harness/trial.h \
	check/harness/trial_numbers.c \
	check/harness/trial_problem.c \
	check/harness/trial_types.c \
	check/harness/trial_values.c \
	check/harness/trial_variant.c \
	check/test/values.c
EXTRA_DIST += check/README.md
