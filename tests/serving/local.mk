# The backend's files linked with a stand-in for the server.
if ENABLE_TRITON
CRITERION_TESTS += tests/serving/backend tests/serving/config tests/serving/memory
SERVING_TEST_FILES = $(serving_triton_libtriton_strata_la_SOURCES) tests/serving/host.c \
	tests/serving/host_metrics.c tests/serving/host_request.c tests/serving/host_private.h tests/serving/host.h tests/serving/serving_net.h tests/engine/batch_net.h
tests_serving_backend_SOURCES = tests/serving/backend.c $(SERVING_TEST_FILES)
tests_serving_backend_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_serving_backend_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_serving_config_SOURCES = tests/serving/config.c $(SERVING_TEST_FILES)
tests_serving_config_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_serving_config_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_serving_memory_SOURCES = tests/serving/memory.c tests/support/fault.c \
	tests/support/fault.h $(SERVING_TEST_FILES)
tests_serving_memory_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_serving_memory_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_serving_memory_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
endif
