# Benchmarks: built by `make bench`, never timed in a test.
BENCHMARKS = \
	bench/batcher \
	bench/bench_overhead \
	bench/convolution_cuda \
	bench/engine_load \
	bench/layer_cuda \
	bench/net_time \
	bench/plan \
	bench/plan_table \
	bench/predict \
	bench/reformat \
	bench/reformat_cuda \
	$(CUDNN_BENCHMARKS)
CUDNN_BENCHMARKS =
EXTRA_PROGRAMS += $(BENCHMARKS)
CLEANFILES += $(BENCHMARKS)
EXTRA_DIST += \
	bench/cudnn_tactics.c \
	bench/requirements.txt \
	bench/resnet50_vs_torch.py \
	bench/samples.h \
	bench/squeezenet_vs_ort.py

# Written by scripts/make_nets.py; tests/test_nets.c checks them.
EXTRA_DIST += scripts/make_nets.py bench/nets/README.md \
	bench/nets/densenet121.ini bench/nets/densenet121_running.ini \
	bench/nets/googlenet.ini bench/nets/inception_v3.ini \
	bench/nets/mobilenet_v2.ini bench/nets/resnet152.ini bench/nets/resnet18.ini \
	bench/nets/resnet50.ini bench/nets/ssd_fpn.ini bench/nets/unet.ini \
	bench/nets/unetpp.ini

bench_batcher_SOURCES = bench/batcher.c bench/batcher_load.c bench/batcher_load.h
bench_batcher_LDADD = libstrata-internal.la $(M_LIBS)
bench_bench_overhead_SOURCES = bench/bench_overhead.c
bench_bench_overhead_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_bench_overhead_LDADD = libstrata-internal.la $(JANSSON_LIBS)
bench_engine_load_SOURCES = bench/engine_load.c bench/device_times.c \
	bench/device_times.h
bench_engine_load_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_engine_load_LDADD = libstrata-internal.la $(JANSSON_LIBS)
bench_net_time_SOURCES = bench/net_time.c bench/net_layers.c bench/net_layers.h
bench_net_time_LDADD = libstrata-internal.la
bench_convolution_cuda_SOURCES = bench/convolution_cuda.c \
	bench/convolution_problems.h bench/impl_time.c bench/impl_time.h
bench_convolution_cuda_LDADD = libstrata-internal.la $(M_LIBS)
bench_layer_cuda_SOURCES = bench/layer_cuda.c bench/impl_time.c bench/impl_time.h
bench_layer_cuda_LDADD = libstrata-check.la libstrata-internal.la $(M_LIBS)
bench_predict_SOURCES = bench/predict.c
bench_predict_LDADD = libstrata-internal.la $(M_LIBS)
bench_plan_SOURCES = bench/plan.c bench/plan_nets.c bench/plan_nets.h
bench_plan_LDADD = libstrata-internal.la
bench_plan_table_SOURCES = bench/plan_table.c bench/edgewise.c bench/edgewise.h \
	bench/plan_baseline.c bench/plan_baseline.h bench/plan_random.c bench/plan_random.h
bench_plan_table_LDADD = libstrata-internal.la
bench_reformat_SOURCES = bench/reformat.c
bench_reformat_LDADD = libstrata-internal.la
bench_reformat_cuda_SOURCES = bench/reformat_cuda.c
bench_reformat_cuda_LDADD = libstrata-internal.la

if HAVE_CUDNN
CUDNN_BENCHMARKS += bench/cudnn_tactics
bench_cudnn_tactics_SOURCES = bench/cudnn_tactics.c plugins/convolution/cudnn/choice.c \
	plugins/convolution/cudnn/graph.c plugins/convolution/cudnn/session.c
bench_cudnn_tactics_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DCUDNN_TACTICS=40
bench_cudnn_tactics_LDADD = $(CUDA_LIBS) -lcudnn $(PTHREAD_LIBS)
endif

.PHONY: bench
bench: all $(BENCHMARKS)
