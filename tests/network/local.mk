CRITERION_TESTS += \
	tests/network/network \
	tests/network/options \
	tests/network/weights
tests_network_network_SOURCES = tests/network/network.c tests/support/large_text.h \
	tests/network/network_text.h
tests_network_options_SOURCES = tests/network/options.c tests/network/network_text.h
tests_network_weights_SOURCES = tests/network/weights.c tests/network/network_text.h
