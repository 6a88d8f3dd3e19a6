CRITERION_TESTS += \
	tests/language/faults \
	tests/language/hugging_face \
	tests/language/linear \
	tests/language/llama2c \
	tests/language/refusals \
	tests/language/sample
LANGUAGE_LDADD = libstrata-language.la $(LDADD) $(JANSSON_LIBS)
tests_language_faults_SOURCES = tests/language/faults.c tests/support/fault.c \
	tests/support/fault.h tests/language/tokens.h
tests_language_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_language_faults_LDADD = $(LANGUAGE_LDADD)
tests_language_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
tests_language_hugging_face_SOURCES = tests/language/hugging_face.c \
	tests/language/tokens.h
tests_language_hugging_face_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_language_hugging_face_LDADD = $(LANGUAGE_LDADD)
# Tokenizers with their steps counted; see tests/network/steps.h.
check_LTLIBRARIES += tests/libcounted_language.la
tests_libcounted_language_la_SOURCES = $(LANGUAGE_SOURCES) core/alloc.c core/status.c \
	core/text.c
tests_libcounted_language_la_CPPFLAGS = $(libstrata_language_la_CPPFLAGS) \
	-DCOUNT_STEPS -include $(top_srcdir)/tests/network/steps.h
tests_libcounted_language_la_CFLAGS = $(AM_CFLAGS) $(COUNTING_CFLAGS)
tests_libcounted_language_la_LIBADD = $(libstrata_language_la_LIBADD)
tests_language_linear_SOURCES = tests/language/linear.c tests/language/tokens.h \
	tests/network/steps.h
tests_language_linear_LDADD = tests/libcounted_language.la $(LDADD)
tests_language_llama2c_SOURCES = tests/language/llama2c.c tests/language/tokens.h
tests_language_llama2c_LDADD = $(LANGUAGE_LDADD)
tests_language_refusals_SOURCES = tests/language/refusals.c tests/language/tokens.h
tests_language_refusals_LDADD = $(LANGUAGE_LDADD)
tests_language_sample_LDADD = libstrata-language.la $(LDADD)
EXTRA_DIST += tests/data/tokenizers
