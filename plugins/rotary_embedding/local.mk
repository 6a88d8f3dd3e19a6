plugin_LTLIBRARIES += plugins/rotary_embedding.la
plugins_rotary_embedding_la_SOURCES = \
	plugins/rotary_embedding/rotary_embedding.c \
	plugins/rotary_embedding/rotary_embedding.h
plugins_rotary_embedding_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_rotary_embedding_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_rotary_embedding_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/rotary_embedding.c

CUDA_PLUGIN_KERNELS += plugins/rotary_embedding/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/rotary_embedding-cuda.la
plugins_rotary_embedding_cuda_la_SOURCES =
plugins_rotary_embedding_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_rotary_embedding_cuda_la_LIBADD = plugins/rotary_embedding/cuda.lo $(CUDA_LIBS)
endif
