plugin_LTLIBRARIES += plugins/pooled_convolution.la
plugins_pooled_convolution_la_SOURCES = \
	plugins/pooled_convolution/pooled_convolution.c \
	plugins/pooled_convolution/shape.h
plugins_pooled_convolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pooled_convolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooled_convolution_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/pooled_convolution.c

CUDA_PLUGIN_KERNELS += plugins/pooled_convolution/cuda.cu
EXTRA_DIST += plugins/pooled_convolution/walk.cuh plugins/pooled_convolution/bytes.cuh \
	plugins/pooled_convolution/threes.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/pooled_convolution-cuda.la
plugins_pooled_convolution_cuda_la_SOURCES =
plugins_pooled_convolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooled_convolution_cuda_la_LIBADD = plugins/pooled_convolution/cuda.lo \
	$(CUDA_LIBS)
# The instructions of a warpgroup are of one chip alone.
plugins/pooled_convolution/cuda.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
endif
