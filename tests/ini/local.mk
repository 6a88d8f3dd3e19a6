CRITERION_TESTS += \
	tests/ini/config \
	tests/ini/limits \
	tests/ini/values
tests_ini_config_SOURCES = tests/ini/config.c tests/ini/config_text.h
tests_ini_limits_SOURCES = tests/ini/limits.c tests/ini/config_text.h
tests_ini_values_SOURCES = tests/ini/values.c tests/ini/config_text.h
