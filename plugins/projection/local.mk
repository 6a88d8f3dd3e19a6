plugin_LTLIBRARIES += plugins/projection.la
plugins_projection_la_SOURCES = plugins/projection/projection.c
plugins_projection_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_projection_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_projection_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/projection.c

CUDA_PLUGIN_KERNELS += plugins/projection/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/projection-cuda.la
plugins_projection_cuda_la_SOURCES =
plugins_projection_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_projection_cuda_la_LIBADD = plugins/projection/cuda.lo \
	plugins/matrix_multiply/pack.lo $(CUDA_LIBS)
endif
