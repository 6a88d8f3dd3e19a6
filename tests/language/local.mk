CRITERION_TESTS += \
	tests/language/sample
tests_language_sample_LDADD = libstrata-language.la $(LDADD)
