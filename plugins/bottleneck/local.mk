plugin_LTLIBRARIES += plugins/bottleneck.la
plugins_bottleneck_la_SOURCES = plugins/bottleneck/bottleneck.c \
	plugins/bottleneck/shape.h
plugins_bottleneck_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_bottleneck_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_bottleneck_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/bottleneck.c

CUDA_PLUGIN_KERNELS += plugins/bottleneck/cuda.cu
EXTRA_DIST += plugins/bottleneck/block.cuh plugins/bottleneck/pieces.cuh \
	plugins/bottleneck/share.cuh plugins/bottleneck/stages.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/bottleneck-cuda.la
plugins_bottleneck_cuda_la_SOURCES =
plugins_bottleneck_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_bottleneck_cuda_la_LIBADD = plugins/bottleneck/cuda.lo $(CUDA_LIBS)
# The instructions of a warpgroup are of one chip alone.
plugins/bottleneck/cuda.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
endif
