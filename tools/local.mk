# The strata command, one file per subcommand.
bin_PROGRAMS += strata
strata_SOURCES = check/allocation.c tools/check.c tools/check.h tools/check_output.c tools/crash.c \
	tools/main.c tools/options.c tools/print.c tools/tool.c tools/tool.h tools/table.c tools/values.c tools/values.h \
	tools/bench/bench.c tools/bench/bench.h tools/bench/devices.c tools/bench/lane.c tools/bench/options.c \
	tools/bench/print.c tools/bench/result.c tools/bench/run.c tools/bench/shapes.c \
	tools/compare/compare.c tools/compare/compare.h tools/compare/collect.c tools/compare/print.c \
	tools/compare/variant.c tools/compare/variant.h \
	tools/predicted.c tools/predicted.h \
	tools/profile/profile.c tools/profile/profile.h tools/profile/measure.c tools/profile/table.c \
	tools/profile/trace.c tools/profile/html.c tools/profile/html_layers.c tools/profile/html_memory.c \
	tools/profile/html_plan.c tools/profile/html_text.c \
	tools/costs.c tools/run/run.c tools/run/run.h tools/run/input.c tools/run/before.c tools/run/output.c tools/run/sizes.c \
	tools/list.c tools/describe.c tools/new_layer/new_layer.c tools/new_layer/new_layer.h \
	tools/new_layer/spec.c tools/new_layer/values.c tools/new_layer/template.c tools/new_layer/template.h \
	tools/explain/explain.c tools/explain/explain.h \
	tools/explain/impls.c \
	tools/explain/inside.c \
	tools/explain/merges.c \
	tools/explain/mixes.c \
	tools/explain/columns.c tools/explain/diff.c tools/explain/dot.c tools/explain/graph.c \
	tools/build.c tools/built.c \
	tools/deploy/config.c tools/deploy/deploy.c tools/deploy/deploy.h tools/deploy/key.c \
	tools/deploy/repository.c \
	tools/generate/decoder.c tools/generate/decoder.h tools/generate/generate.c \
	tools/generate/text.c tools/generate/text.h \
	tools/import/import.c tools/import/model.c tools/import/model.h \
	tools/import/operators.c tools/import/options.c \
	tools/quantise/quantise.c tools/quantise/quantise.h tools/quantise/data.c tools/quantise/labels.c \
	tools/quantise/options.c tools/quantise/options.h tools/quantise/outputs.c tools/quantise/outputs.h tools/quantise/print.c \
	tools/diff.c \
	tools/inspect/inspect.c tools/inspect/onnx.c tools/inspect/onnx.h \
	tools/explain/report.c \
	tools/explain/report_graph.c \
	tools/explain/quantised.c tools/explain/layout.c tools/explain/sizes.c tools/explain/summary.c tools/explain/svg.c tools/explain/table.c tools/explain/verify.c tools/doctor.c tools/completion.c
strata_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(NETTLE_CFLAGS)
nodist_strata_SOURCES = tools/template_files.c
strata_LDADD = libstrata-check.la libstrata-calibrate.la libstrata-language.la libstrata-internal.la $(JANSSON_LIBS) $(NETTLE_LIBS) $(M_LIBS) $(PTHREAD_LIBS)

# What new-layer writes, carried in the command: it has no folder to look for.
TEMPLATES = \
	tools/new_layer/templates/CMakeLists.txt \
	tools/new_layer/templates/Makefile \
	tools/new_layer/templates/Makefile.am \
	tools/new_layer/templates/README.md \
	tools/new_layer/templates/configure.ac \
	tools/new_layer/templates/extends.c \
	tools/new_layer/templates/extends.ini \
	tools/new_layer/templates/extends_cuda.cu \
	tools/new_layer/templates/gitignore \
	tools/new_layer/templates/layer.c \
	tools/new_layer/templates/layer.h \
	tools/new_layer/templates/layer.ini \
	tools/new_layer/templates/layer_cuda.cu \
	tools/new_layer/templates/params.inc
EXTRA_DIST += $(TEMPLATES) scripts/embed.sh scripts/man-page.sh scripts/transcript.sh
CLEANFILES += tools/template_files.c
tools/template_files.c: $(TEMPLATES) $(layer_headers) scripts/embed.sh
	$(AM_V_GEN)$(MKDIR_P) tools && cd '$(srcdir)' && scripts/embed.sh $(TEMPLATES) \
		$(layer_headers) >'$(abs_builddir)/$@'

# Manual pages and completion are made by the command itself.
if HAVE_HELP2MAN
MAN_PAGES = tools/strata-build.1 \
	tools/strata-deploy.1 \
	tools/strata-diff.1 \
	tools/strata-generate.1 \
	tools/strata-import.1 \
	tools/strata-inspect.1 \
	tools/strata-profile.1 \
	tools/strata-quantise.1 \
	tools/strata-compare.1 \
	tools/strata.1 tools/strata-run.1 tools/strata-bench.1 tools/strata-costs.1 tools/strata-explain.1 \
	tools/strata-check.1 tools/strata-list.1 tools/strata-describe.1 \
	tools/strata-new-layer.1 tools/strata-doctor.1 \
	tools/strata-completion.1
man1_MANS = $(MAN_PAGES)
CLEANFILES += $(MAN_PAGES)

# The folders are for FILES.
$(MAN_PAGES): strata$(EXEEXT) docs/environment.md scripts/man-page.sh
	$(AM_V_GEN)$(MKDIR_P) tools && HELP2MAN='$(HELP2MAN)' bindir='$(bindir)' libexecdir='$(libexecdir)' \
	libdir='$(libdir)' includedir='$(includedir)' datarootdir='$(datarootdir)' \
	datadir='$(datadir)' docdir='$(docdir)' mandir='$(mandir)' \
	$(srcdir)/scripts/man-page.sh ./strata \
		'$(PACKAGE_VERSION)' $(srcdir)/docs/environment.md \
		`basename $@ .1 | sed 's/strata-*//'` >$@.tmp && mv $@.tmp $@
endif

bashcompletion_DATA = tools/strata
CLEANFILES += tools/strata
tools/strata: strata$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools && ./strata completion bash >$@
EXTRA_DIST += tools/README.md
