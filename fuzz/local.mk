# libFuzzer targets: one per reader of untrusted bytes. `make fuzz-short` builds them with
# clang, ASan and UBSan from the sources themselves, and runs each for FUZZ_SECONDS;
# `make fuzz-coverage` tells which lines of the readers that has reached.
FUZZ_TARGETS = ini safetensors npy image note costs certificate plan engine onnx \
	import ranges tokenizer
FUZZ_SECONDS = 60
FUZZ_CC = clang
FUZZ_FLAGS = -g -O1 -std=gnu11 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -Wno-unknown-warning-option
EXTRA_DIST += \
	fuzz/certificate.c \
	fuzz/costs.c \
	fuzz/engine.c \
	fuzz/image.c \
	fuzz/import.c \
	fuzz/ini.c \
	fuzz/note.c \
	fuzz/npy.c \
	fuzz/onnx.c \
	fuzz/plan.c \
	fuzz/ranges.c \
	fuzz/safetensors.c \
	fuzz/tokenizer.c \
	fuzz/coverage.sh \
	fuzz/nets/batches.ini \
	fuzz/nets/branches.ini \
	fuzz/nets/shapes.ini \
	fuzz/seeds.sh

# Sources of the whole library, less the kernels that need run-time CPU dispatch.
FUZZED_FILES = $(LIBRARY_SOURCES) $(LANGUAGE_SOURCES) $(CALIBRATE_SOURCES)

.PHONY: fuzz fuzz-short fuzz-seeds fuzz-coverage
# In FUZZ_FOLDER, with FUZZ_FLAGS.
FUZZ_FOLDER = fuzz-build
fuzz:
	@mkdir -p $(FUZZ_FOLDER)/obj
	@for s in $(filter %.c,$(FUZZED_FILES)); do \
		o=$(FUZZ_FOLDER)/obj/`echo $$s | tr / _`.o; \
		$(FUZZ_CC) $(FUZZ_FLAGS) -DHAVE_CONFIG_H -I. $(AM_CPPFLAGS) $(INIH_CFLAGS) \
			$(JANSSON_CFLAGS) $(NETTLE_CFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS) \
			$(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS) \
			-c $(srcdir)/$$s -o $$o || exit 1; \
	done
	@for t in $(FUZZ_TARGETS); do \
		$(FUZZ_CC) $(FUZZ_FLAGS) -DHAVE_CONFIG_H -I. $(AM_CPPFLAGS) \
			$(srcdir)/fuzz/$$t.c $(FUZZ_FOLDER)/obj/*.o \
			-o $(FUZZ_FOLDER)/fuzz_$$t \
			$(INIH_LIBS) $(JANSSON_LIBS) $(NETTLE_LIBS) $(PNG_LIBS) $(JPEG_LIBS) $(DL_LIBS) \
			$(PCRE2_LIBS) $(UTF8PROC_LIBS) $(M_LIBS) $(PTHREAD_LIBS) || exit 1; \
	done

FUZZ_ENVIRONMENT = STRATA_PLUGIN_PATH= STRATA_PLUGIN_DIR='$(abs_builddir)/plugins/.libs' \
	LSAN_OPTIONS='suppressions=$(abs_srcdir)/tests/lsan.supp:print_suppressions=0:use_tls=0'
fuzz-seeds: all
	@$(FUZZ_ENVIRONMENT) $(srcdir)/fuzz/seeds.sh '$(abs_builddir)/strata' '$(srcdir)' fuzz-build

# Lines of the readers that the corpora of fuzz-short run; fails under 90 % of any.
fuzz-coverage: fuzz-seeds
	@$(MAKE) $(AM_MAKEFLAGS) fuzz FUZZ_FOLDER=fuzz-build/coverage FUZZ_FLAGS='-g -O1 \
		-std=gnu11 -fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping \
		-Wno-unknown-warning-option'
	@$(FUZZ_ENVIRONMENT) $(srcdir)/fuzz/coverage.sh fuzz-build 90

fuzz-short: fuzz-seeds fuzz
	@for t in $(FUZZ_TARGETS); do \
		mkdir -p fuzz-build/corpus_$$t; \
		echo "fuzz_$$t: $(FUZZ_SECONDS) s"; \
		$(FUZZ_ENVIRONMENT) fuzz-build/fuzz_$$t -max_total_time=$(FUZZ_SECONDS) \
			-rss_limit_mb=2048 -timeout=10 -max_len=100000 -print_final_stats=1 fuzz-build/corpus_$$t >fuzz-build/$$t.out 2>&1 || \
			{ tail -n 40 fuzz-build/$$t.out; exit 1; }; \
		grep -E 'number_of_executed_units|new_units_added' fuzz-build/$$t.out; \
	done

clean-local:
	-rm -rf fuzz-build
