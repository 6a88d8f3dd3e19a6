plugin_LTLIBRARIES += plugins/bottleneck.la
plugins_bottleneck_la_SOURCES = plugins/bottleneck/bottleneck.c \
	plugins/bottleneck/shape.h
plugins_bottleneck_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_bottleneck_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_bottleneck_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/bottleneck.c

BOTTLENECK_KERNELS = plugins/bottleneck/cuda.cu plugins/bottleneck/roll.cu \
	plugins/bottleneck/stream.cu plugins/bottleneck/strip.cu
CUDA_PLUGIN_KERNELS += $(BOTTLENECK_KERNELS)
EXTRA_DIST += plugins/bottleneck/accept.cuh plugins/bottleneck/block.cuh \
	plugins/bottleneck/impls.cuh plugins/bottleneck/many.cuh \
	plugins/bottleneck/pieces.cuh \
	plugins/bottleneck/roll.cuh plugins/bottleneck/roll_block.cuh \
	plugins/bottleneck/roll_job.cuh plugins/bottleneck/roll_share.cuh \
	plugins/bottleneck/share.cuh plugins/bottleneck/stages.cuh \
	plugins/bottleneck/stream.cuh plugins/bottleneck/stream_job.cuh \
	plugins/bottleneck/strip.cuh \
	plugins/bottleneck/strip_block.cuh plugins/bottleneck/strip_job.cuh \
	plugins/bottleneck/strip_share.cuh plugins/bottleneck/strip_tail.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/bottleneck-cuda.la
plugins_bottleneck_cuda_la_SOURCES =
plugins_bottleneck_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_bottleneck_cuda_la_LIBADD = $(BOTTLENECK_KERNELS:.cu=.lo) $(CUDA_LIBS)
# The instructions of a warpgroup are of one chip alone.
plugins/bottleneck/cuda.lo plugins/bottleneck/roll.lo plugins/bottleneck/stream.lo \
plugins/bottleneck/strip.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
endif
