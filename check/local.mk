# The layer test: what `strata check` and the layers' own tests share.
noinst_LTLIBRARIES += libstrata-check.la
libstrata_check_la_SOURCES = \
	check/harness.h \
	check/memory.c \
	check/memory.h \
	check/mirror.c \
	check/mirror.h \
	check/node.c \
	check/session.c \
	check/session.h \
	check/trial.c \
	check/trial.h
