# The layer test: what `strata check` and the layers' own tests share.
noinst_LTLIBRARIES += libstrata-check.la
libstrata_check_la_SOURCES = \
	check/again.c \
	check/attributes.c \
	check/cases.c \
	check/cases.h \
	check/check.c \
	check/check.h \
	check/child.c \
	check/child.h \
	check/environment.c \
	check/environment.h \
	check/errors.c \
	check/harness.h \
	check/harness_run.c \
	check/load.c \
	check/memory.c \
	check/memory.h \
	check/mirror.c \
	check/mirror.h \
	check/module_range.c \
	check/module_range.h \
	check/node.c \
	check/repeat.c \
	check/rules.c \
	check/rules.h \
	check/session.c \
	check/session.h \
	check/session_make.c \
	check/session_private.h \
	check/shapes.c \
	check/shrink.c \
	check/shrink.h \
	check/streams.c \
	check/sweep.c \
	check/test.h \
	check/trial.c \
	check/trial.h \
	check/trial_values.c \
	check/values.c
