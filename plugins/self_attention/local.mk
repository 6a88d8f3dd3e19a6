plugin_LTLIBRARIES += plugins/self_attention.la
plugins_self_attention_la_SOURCES = \
	plugins/attention/plan.c \
	plugins/attention/reference.c \
	plugins/self_attention/self_attention.c \
	plugins/self_attention/self_attention.h
plugins_self_attention_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_self_attention_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_self_attention_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/self_attention.c

CUDA_PLUGIN_KERNELS += plugins/self_attention/hopper.cu
EXTRA_DIST += \
	plugins/self_attention/heads.cuh \
	plugins/self_attention/hopper.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/self_attention-cuda.la
plugins_self_attention_cuda_la_SOURCES = plugins/attention/plan.c
plugins_self_attention_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_self_attention_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_self_attention_cuda_la_LIBADD = plugins/self_attention/hopper.lo \
	plugins/matrix_multiply/pack.lo $(CUDA_LIBS) $(M_LIBS) $(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/self_attention/hopper.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
