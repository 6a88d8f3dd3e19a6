plugin_LTLIBRARIES += plugins/attention.la
plugins_attention_la_SOURCES = \
	plugins/attention/attention.c \
	plugins/attention/attention.h \
	plugins/attention/exact.c \
	plugins/attention/host.c \
	plugins/attention/host.h \
	plugins/attention/layer.h \
	plugins/attention/plan.c \
	plugins/attention/reference.c \
	plugins/attention/rows.c \
	plugins/attention/rows.h \
	plugins/attention/split.c \
	plugins/attention/tiled.c
plugins_attention_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fno-math-errno -fno-trapping-math
plugins_attention_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_attention_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/attention.c

ATTENTION_KERNELS = \
	plugins/attention/cuda.cu \
	plugins/attention/decode.cu \
	plugins/attention/hopper.cu \
	plugins/attention/present.cu \
	plugins/attention/simt.cu
CUDA_PLUGIN_KERNELS += $(ATTENTION_KERNELS)
EXTRA_DIST += \
	plugins/attention/consumer.cuh \
	plugins/attention/decode.cuh \
	plugins/attention/decode_reader.cuh \
	plugins/attention/hopper.cuh \
	plugins/attention/job.cuh \
	plugins/attention/launch.cuh \
	plugins/attention/scores.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/attention-cuda.la
plugins_attention_cuda_la_SOURCES = plugins/attention/plan.c
plugins_attention_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_attention_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_attention_cuda_la_LIBADD = $(ATTENTION_KERNELS:.cu=.lo) $(CUDA_LIBS) $(M_LIBS) \
	$(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/attention/decode.lo plugins/attention/hopper.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
