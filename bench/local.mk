# Benchmarks: built by `make bench`, never timed in a test.
BENCHMARKS = bench/net_time bench/plan bench/reformat
EXTRA_PROGRAMS += $(BENCHMARKS)
CLEANFILES += $(BENCHMARKS)
EXTRA_DIST += bench/squeezenet_vs_ort.py bench/requirements.txt

bench_net_time_SOURCES = bench/net_time.c
bench_net_time_LDADD = libstrata.la
bench_plan_SOURCES = bench/plan.c bench/plan_nets.c bench/plan_nets.h
bench_plan_LDADD = libstrata-internal.la
bench_reformat_SOURCES = bench/reformat.c
bench_reformat_LDADD = libstrata-internal.la

.PHONY: bench
bench: all $(BENCHMARKS)
