plugin_LTLIBRARIES += plugins/shortcut_convolution.la
plugins_shortcut_convolution_la_SOURCES = \
	plugins/shortcut_convolution/shortcut_convolution.c \
	plugins/shortcut_convolution/shape.h
plugins_shortcut_convolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shortcut_convolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shortcut_convolution_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/shortcut_convolution.c

CUDA_PLUGIN_KERNELS += plugins/shortcut_convolution/cuda.cu
EXTRA_DIST += plugins/shortcut_convolution/cuda.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/shortcut_convolution-cuda.la
plugins_shortcut_convolution_cuda_la_SOURCES =
plugins_shortcut_convolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shortcut_convolution_cuda_la_LIBADD = plugins/shortcut_convolution/cuda.lo \
	$(CUDA_LIBS) $(PTHREAD_LIBS)
# The instructions of a warpgroup are of one chip alone.
plugins/shortcut_convolution/cuda.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
endif
