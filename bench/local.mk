# Benchmarks: built by `make bench`, never timed in a test.
BENCHMARKS = bench/net_time bench/reformat bench/reformat_cuda
EXTRA_PROGRAMS += $(BENCHMARKS)
CLEANFILES += $(BENCHMARKS)
EXTRA_DIST += bench/squeezenet_vs_ort.py bench/requirements.txt

bench_net_time_SOURCES = bench/net_time.c
bench_net_time_LDADD = libstrata.la
bench_reformat_SOURCES = bench/reformat.c
bench_reformat_LDADD = libstrata-internal.la
bench_reformat_cuda_SOURCES = bench/reformat_cuda.c
bench_reformat_cuda_LDADD = libstrata-internal.la

.PHONY: bench
bench: all $(BENCHMARKS)
