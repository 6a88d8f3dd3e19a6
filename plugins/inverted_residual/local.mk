plugin_LTLIBRARIES += plugins/inverted_residual.la
plugins_inverted_residual_la_SOURCES = plugins/inverted_residual/inverted_residual.c \
	plugins/inverted_residual/shape.h
plugins_inverted_residual_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_inverted_residual_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_inverted_residual_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/inverted_residual.c

CUDA_PLUGIN_KERNELS += plugins/inverted_residual/cuda.cu
EXTRA_DIST += plugins/inverted_residual/block.cuh \
	plugins/inverted_residual/pieces.cuh plugins/inverted_residual/share.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/inverted_residual-cuda.la
plugins_inverted_residual_cuda_la_SOURCES =
plugins_inverted_residual_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_inverted_residual_cuda_la_LIBADD = plugins/inverted_residual/cuda.lo $(CUDA_LIBS)
endif
