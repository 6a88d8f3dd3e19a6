# The strata command, one file per subcommand.
bin_PROGRAMS += strata
strata_SOURCES = check/allocation.c tools/check.c tools/check.h tools/check_output.c \
	tools/main.c tools/tool.c tools/tool.h tools/table.c \
	tools/bench.c tools/bench.h tools/bench_lane.c tools/bench_options.c \
	tools/bench_print.c tools/bench_result.c tools/bench_run.c \
	tools/compare.c tools/compare.h tools/compare_collect.c tools/compare_print.c \
	tools/variant.c tools/variant.h \
	tools/profile.c tools/profile.h tools/profile_measure.c tools/profile_table.c \
	tools/profile_trace.c tools/html.c tools/html_layers.c tools/html_memory.c \
	tools/html_plan.c \
	tools/costs.c tools/run.c tools/run.h tools/run_input.c tools/run_output.c \
	tools/list.c tools/describe.c tools/new_layer.c tools/new_layer.h \
	tools/new_layer_spec.c tools/new_layer_values.c tools/template.c tools/template.h \
	tools/explain.c tools/explain.h \
	tools/explain_impls.c \
	tools/explain_columns.c tools/explain_diff.c tools/explain_dot.c tools/explain_graph.c \
	tools/build.c \
	tools/diff.c \
	tools/inspect.c \
	tools/report.c \
	tools/report_graph.c \
	tools/explain_layout.c tools/explain_svg.c tools/explain_table.c tools/explain_verify.c tools/doctor.c tools/completion.c
strata_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
nodist_strata_SOURCES = tools/template_files.c
strata_LDADD = libstrata-check.la libstrata-internal.la $(JANSSON_LIBS) $(M_LIBS) $(PTHREAD_LIBS)

# What new-layer writes, carried in the command: it has no folder to look for.
TEMPLATES = \
	tools/templates/CMakeLists.txt \
	tools/templates/Makefile \
	tools/templates/Makefile.am \
	tools/templates/README.md \
	tools/templates/configure.ac \
	tools/templates/extends.c \
	tools/templates/extends.ini \
	tools/templates/extends_cuda.cu \
	tools/templates/gitignore \
	tools/templates/layer.c \
	tools/templates/layer.h \
	tools/templates/layer.ini \
	tools/templates/layer_cuda.cu \
	tools/templates/params.inc
EXTRA_DIST += $(TEMPLATES) scripts/embed.sh scripts/transcript.sh
CLEANFILES += tools/template_files.c
tools/template_files.c: $(TEMPLATES) include/strata/layers.h scripts/embed.sh
	$(AM_V_GEN)$(MKDIR_P) tools && cd '$(srcdir)' && scripts/embed.sh $(TEMPLATES) \
		include/strata/layers.h >'$(abs_builddir)/$@'

# Manual pages and completion are made by the command itself.
if HAVE_HELP2MAN
MAN_PAGES = tools/strata-build.1 \
	tools/strata-diff.1 \
	tools/strata-inspect.1 \
	tools/strata-profile.1 \
	tools/strata-compare.1 \
	tools/strata.1 tools/strata-run.1 tools/strata-bench.1 tools/strata-costs.1 tools/strata-explain.1 \
	tools/strata-check.1 tools/strata-list.1 tools/strata-describe.1 \
	tools/strata-new-layer.1 tools/strata-doctor.1 \
	tools/strata-completion.1
man1_MANS = $(MAN_PAGES)
CLEANFILES += $(MAN_PAGES)

$(MAN_PAGES): strata$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools && page=`basename $@ .1` && \
	command=`echo $$page | sed 's/strata-*//'` && \
	$(HELP2MAN) --no-info --name="`./strata $$command --help | sed -n 2p | sed 's/\.$$//'`" \
		--version-string='$(PACKAGE_VERSION)' --output=$@ "./strata $$command"
endif

bashcompletion_DATA = tools/strata
CLEANFILES += tools/strata
tools/strata: strata$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools && ./strata completion bash >$@
