# libFuzzer targets, built with clang: `make fuzz-short`.
