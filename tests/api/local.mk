CRITERION_TESTS += \
	tests/api/arguments \
	tests/api/image \
	tests/api/module \
	tests/api/struct_size
nodist_tests_api_arguments_SOURCES = tests/api/arguments_calls.h
tests_api_arguments_SOURCES = tests/api/arguments.c tests/api/given.h
tests/api/arguments.$(OBJEXT): tests/api/arguments_calls.h
tests/api/arguments_calls.h: $(srcdir)/tests/api/arguments.awk \
		$(top_srcdir)/include/strata/strata.h $(top_srcdir)/include/strata/batcher.h \
		$(top_srcdir)/include/strata/module.h \
		$(top_srcdir)/include/strata/parts.h $(top_srcdir)/include/strata/sizes.h \
		$(top_srcdir)/include/strata/state.h
	$(AM_V_GEN)$(MKDIR_P) tests/api && $(AWK) -f $(srcdir)/tests/api/arguments.awk \
		$(top_srcdir)/include/strata/strata.h \
		$(top_srcdir)/include/strata/batcher.h \
		$(top_srcdir)/include/strata/module.h \
		$(top_srcdir)/include/strata/parts.h \
		$(top_srcdir)/include/strata/sizes.h \
		$(top_srcdir)/include/strata/state.h >$@.new && mv $@.new $@
CLEANFILES += tests/api/arguments_calls.h
EXTRA_DIST += tests/api/arguments.awk
tests_api_image_SOURCES = tests/api/image.c tests/engine/engine_session.h
tests_api_struct_size_SOURCES = tests/api/struct_size.c tests/engine/engine_session.h
tests_api_module_SOURCES = tests/api/module.c tests/engine/engine_session.h
