plugin_LTLIBRARIES += plugins/identity.la
plugins_identity_la_SOURCES = plugins/identity/identity.c
plugins_identity_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_identity_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_identity_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/identity.c

CUDA_PLUGIN_KERNELS += plugins/identity/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/identity-cuda.la
plugins_identity_cuda_la_SOURCES =
plugins_identity_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_identity_cuda_la_LIBADD = plugins/identity/cuda.lo $(CUDA_LIBS)
endif
