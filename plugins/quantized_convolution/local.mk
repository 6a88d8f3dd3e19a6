plugin_LTLIBRARIES += plugins/quantized_convolution.la
plugins_quantized_convolution_la_SOURCES = \
	plugins/quantized_convolution/amx.c plugins/quantized_convolution/amx.h \
	plugins/quantized_convolution/amx_gather.c \
	plugins/quantized_convolution/amx_tile.c \
	plugins/quantized_convolution/depthwise.c \
	plugins/quantized_convolution/depthwise.h \
	plugins/quantized_convolution/depthwise_strip.c \
	plugins/quantized_convolution/end.c plugins/quantized_convolution/end.h \
	plugins/quantized_convolution/end_avx512.h \
	plugins/quantized_convolution/finish.c \
	plugins/quantized_convolution/join.h \
	plugins/quantized_convolution/pack.c \
	plugins/quantized_convolution/quantized_convolution.c \
	plugins/quantized_convolution/vnni.c plugins/quantized_convolution/vnni.h \
	plugins/quantized_convolution/vnni_join.c \
	plugins/quantized_convolution/vnni_tile.c
plugins_quantized_convolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off
plugins_quantized_convolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_convolution_la_LIBADD = $(M_LIBS) $(PTHREAD_LIBS)
LAYER_CASES += tests/plugins/quantized_convolution.c
ONEDNN_SOURCES += plugins/quantized_convolution/onednn.c

QUANTIZED_CONVOLUTION_KERNELS = \
	plugins/quantized_convolution/cuda.cu \
	plugins/quantized_convolution/depthwise.cu
CUDA_PLUGIN_KERNELS += $(QUANTIZED_CONVOLUTION_KERNELS)
EXTRA_DIST += plugins/quantized_convolution/depthwise.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_convolution-cuda.la
plugins_quantized_convolution_cuda_la_SOURCES =
plugins_quantized_convolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_convolution_cuda_la_LIBADD = $(QUANTIZED_CONVOLUTION_KERNELS:.cu=.lo) \
	$(QUANTIZED_HOPPER_KERNELS:.cu=.lo) $(CUDA_LIBS) $(PTHREAD_LIBS)
endif
