# Benchmarks: built by `make bench`, never timed in a test.
BENCHMARKS = \
	bench/batcher \
	bench/bench_overhead \
	bench/calls \
	bench/cuda/convolution \
	bench/engine_load \
	bench/cuda/layer \
	bench/net_time \
	bench/plan/claims \
	bench/plan/plan \
	bench/plan/table \
	bench/plan/predict \
	bench/reformat \
	bench/serving/batcher \
	bench/serving/parts \
	bench/serving/soak \
	bench/cuda/reformat \
	$(CUDNN_BENCHMARKS)
CUDNN_BENCHMARKS =
EXTRA_PROGRAMS += $(BENCHMARKS)
CLEANFILES += $(BENCHMARKS)
EXTRA_DIST += \
	bench/serving/acceptance.py \
	bench/serving/behaviour.py \
	bench/serving/case.py \
	bench/serving/clients.py \
	bench/serving/gpus.py \
	bench/serving/gpu.sh \
	bench/serving/server.py \
	bench/serving/speed.py \
	bench/serving/turns.py
bench_serving_batcher_SOURCES = bench/serving/batcher.c
bench_serving_batcher_LDADD = libstrata.la $(PTHREAD_LIBS)
bench_serving_parts_SOURCES = bench/serving/parts.c
bench_serving_parts_LDADD = libstrata.la $(PTHREAD_LIBS)
bench_serving_soak_SOURCES = bench/serving/soak.c bench/serving/soak_batches.c \
	bench/serving/soak_look.c bench/serving/soak_rows.c bench/serving/soak_work.c \
	bench/serving/soak.h
bench_serving_soak_LDADD = libstrata.la $(PTHREAD_LIBS) $(M_LIBS)
# Preloaded into a server that is measured.
EXTRA_LTLIBRARIES += bench/serving/copy_count.la
bench_serving_copy_count_la_SOURCES = bench/serving/copy_count.c
bench_serving_copy_count_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)/bench/serving/.libs
bench_serving_copy_count_la_LIBADD = $(DL_LIBS) $(PTHREAD_LIBS)
if ENABLE_TRITON
# What a server is measured beside.
EXTRA_LTLIBRARIES += bench/serving/libtriton_null.la
bench_serving_libtriton_null_la_SOURCES = bench/serving/null_backend.c \
	serving/triton/sender.c
bench_serving_libtriton_null_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_serving_libtriton_null_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)/bench/serving/.libs
bench_serving_libtriton_null_la_LIBADD = $(JANSSON_LIBS) $(PTHREAD_LIBS)
NULL_BACKEND = bench/serving/libtriton_null.la
# The backend's files with the tests' stand-in for the server.
if HAVE_CRITERION
BENCHMARKS += bench/serving/backend_time
bench_serving_backend_time_SOURCES = bench/serving/backend_time.c $(SERVING_TEST_FILES)
bench_serving_backend_time_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_serving_backend_time_LDADD = libstrata-internal.la $(JANSSON_LIBS) $(CRITERION_LIBS)
endif
endif
EXTRA_DIST += \
	bench/cuda/cudnn_tactics.c \
	bench/sequences/bert.py \
	bench/sequences/dynamic_lstm.py \
	bench/sequences/in_turns.py \
	bench/sequences/vs_peers.py \
	bench/sequences/vs_torch.py \
	bench/sequences/blocks.py \
	bench/sequences/networks.py \
	bench/sequences/sizes.py \
	bench/python/calls.py bench/python/gpu.py \
	bench/default_plans.py \
	bench/host_vs_peers.py \
	bench/requirements.txt \
	bench/layers_vs_torch.py \
	bench/host_int8.py bench/integers/cases.py bench/integers/compare.py \
	bench/host_layers.py bench/layer_cases.py \
	bench/networks_vs_torch.py bench/plan/lost_time.py bench/ini_torch.py \
	bench/torch_times.py \
	bench/samples.h \
	bench/wait_policy.py

# Written by scripts/make_nets.py; tests/planner/nets.c checks them.
EXTRA_DIST += scripts/make_nets.py scripts/net_writer.py bench/nets/README.md \
	bench/nets/densenet121.ini bench/nets/densenet121_running.ini \
	bench/nets/efficientnet_b0.ini bench/nets/googlenet.ini \
	bench/nets/inception_v3.ini bench/nets/mobilenet_v2.ini \
	bench/nets/resnet152.ini bench/nets/resnet18.ini bench/nets/resnet50.ini \
	bench/nets/ssd_fpn.ini bench/nets/unet.ini \
	bench/nets/unetpp.ini

bench_batcher_SOURCES = bench/batcher.c bench/batcher_load.c bench/batcher_load.h
bench_batcher_LDADD = libstrata-internal.la $(M_LIBS)
bench_bench_overhead_SOURCES = bench/bench_overhead.c
bench_bench_overhead_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_bench_overhead_LDADD = libstrata-internal.la $(JANSSON_LIBS)
bench_calls_SOURCES = bench/calls.c
bench_calls_LDADD = libstrata-internal.la
bench_engine_load_SOURCES = bench/engine_load.c bench/device_times.c \
	bench/device_times.h
bench_engine_load_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_engine_load_LDADD = libstrata-internal.la $(JANSSON_LIBS)
bench_net_time_SOURCES = bench/net_time.c bench/net_layers.c bench/net_layers.h
bench_net_time_LDADD = libstrata-internal.la
bench_cuda_convolution_SOURCES = bench/cuda/convolution.c \
	bench/cuda/convolution_problems.h bench/cuda/impl_time.c bench/cuda/impl_time.h
bench_cuda_convolution_LDADD = libstrata-internal.la $(M_LIBS)
bench_cuda_layer_SOURCES = bench/cuda/layer.c bench/cuda/impl_time.c bench/cuda/impl_time.h
bench_cuda_layer_LDADD = libstrata-check.la libstrata-internal.la $(M_LIBS)
bench_plan_claims_SOURCES = bench/plan/claims.c
bench_plan_claims_LDADD = libstrata-internal.la
bench_plan_predict_SOURCES = bench/plan/predict.c
bench_plan_predict_LDADD = libstrata-internal.la $(M_LIBS)
bench_plan_plan_SOURCES = bench/plan/plan.c bench/plan/nets.c bench/plan/nets.h
bench_plan_plan_LDADD = libstrata-internal.la
bench_plan_table_SOURCES = bench/plan/table.c bench/plan/edgewise.c bench/plan/edgewise.h \
	bench/plan/baseline.c bench/plan/baseline.h bench/plan/random.c bench/plan/random.h
bench_plan_table_LDADD = libstrata-internal.la
bench_reformat_SOURCES = bench/reformat.c
bench_reformat_LDADD = libstrata-internal.la
bench_cuda_reformat_SOURCES = bench/cuda/reformat.c
bench_cuda_reformat_LDADD = libstrata-internal.la

if HAVE_CUDNN
CUDNN_BENCHMARKS += bench/cuda/cudnn_tactics
bench_cuda_cudnn_tactics_SOURCES = bench/cuda/cudnn_tactics.c plugins/convolution/cudnn/choice.c \
	plugins/convolution/cudnn/graph.c plugins/convolution/cudnn/session.c
bench_cuda_cudnn_tactics_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DCUDNN_TACTICS=40
bench_cuda_cudnn_tactics_LDADD = $(CUDA_LIBS) -lcudnn $(PTHREAD_LIBS)
endif

.PHONY: bench
bench: config.h
	$(MAKE) $(AM_MAKEFLAGS) all-am $(BENCHMARKS) bench/serving/copy_count.la $(NULL_BACKEND)
