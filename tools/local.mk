# The strata command, one file per subcommand.
bin_PROGRAMS += strata
strata_SOURCES = tools/main.c tools/tool.c tools/tool.h tools/table.c \
	tools/run.c tools/run.h tools/run_input.c tools/run_output.c \
	tools/list.c tools/describe.c tools/explain.c tools/doctor.c tools/completion.c
strata_LDADD = libstrata-internal.la
