# Benchmarks: built by `make bench`, never timed in a test.
