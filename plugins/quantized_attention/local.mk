plugin_LTLIBRARIES += plugins/quantized_attention.la
plugins_quantized_attention_la_SOURCES = \
	plugins/attention/plan.c \
	plugins/attention/reference.c \
	plugins/quantized_attention/quantized_attention.c \
	plugins/quantized_attention/quantized_attention.h
plugins_quantized_attention_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_quantized_attention_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_attention_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_attention.c

QUANTIZED_ATTENTION_KERNELS = \
	plugins/quantized_attention/cuda.cu \
	plugins/quantized_attention/float8.cu
CUDA_PLUGIN_KERNELS += $(QUANTIZED_ATTENTION_KERNELS)
EXTRA_DIST += \
	plugins/quantized_attention/float8.cuh \
	plugins/quantized_attention/float8.h
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_attention-cuda.la
plugins_quantized_attention_cuda_la_SOURCES = plugins/attention/plan.c
plugins_quantized_attention_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_quantized_attention_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_attention_cuda_la_LIBADD = $(QUANTIZED_ATTENTION_KERNELS:.cu=.lo) \
	$(CUDA_LIBS) $(M_LIBS) $(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/quantized_attention/float8.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
