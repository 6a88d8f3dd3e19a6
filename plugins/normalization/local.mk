plugin_LTLIBRARIES += plugins/normalization.la
plugins_normalization_la_SOURCES = plugins/normalization/normalization.c
plugins_normalization_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_normalization_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_normalization_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/normalization.c

CUDA_PLUGIN_KERNELS += plugins/normalization/cuda.cu \
	plugins/normalization/few.cu \
	plugins/normalization/long.cu \
	plugins/normalization/packed.cu \
	plugins/normalization/pipeline.cu \
	plugins/normalization/ring.cu \
	plugins/normalization/short.cu \
	plugins/normalization/slab.cu \
	plugins/normalization/stream.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/normalization-cuda.la
plugins_normalization_cuda_la_SOURCES =
plugins_normalization_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_normalization_cuda_la_LIBADD = plugins/normalization/cuda.lo \
	plugins/normalization/few.lo \
	plugins/normalization/long.lo \
	plugins/normalization/packed.lo \
	plugins/normalization/pipeline.lo \
	plugins/normalization/ring.lo \
	plugins/normalization/short.lo \
	plugins/normalization/slab.lo \
	plugins/normalization/stream.lo \
	$(CUDA_LIBS)
endif

EXTRA_DIST += plugins/normalization/channels.h \
	plugins/normalization/definition.h \
	plugins/normalization/held.cuh \
	plugins/normalization/job.cuh \
	plugins/normalization/lines.h \
	plugins/normalization/normalization.h \
	plugins/normalization/packed.cuh \
	plugins/normalization/pieces.cuh \
	plugins/normalization/pipeline.cuh \
	plugins/normalization/pipeline_step.cuh \
	plugins/normalization/rows.cuh \
	plugins/normalization/slab.cuh \
	plugins/normalization/stream.cuh \
	plugins/normalization/stretch.h
