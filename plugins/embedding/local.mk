plugin_LTLIBRARIES += plugins/embedding.la
plugins_embedding_la_SOURCES = plugins/embedding/embedding.c
plugins_embedding_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_embedding_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_embedding_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/embedding.c

CUDA_PLUGIN_KERNELS += plugins/embedding/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/embedding-cuda.la
plugins_embedding_cuda_la_SOURCES =
plugins_embedding_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_embedding_cuda_la_LIBADD = plugins/embedding/cuda.lo $(CUDA_LIBS)
endif
