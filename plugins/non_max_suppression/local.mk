plugin_LTLIBRARIES += plugins/non_max_suppression.la
plugins_non_max_suppression_la_SOURCES = plugins/non_max_suppression/non_max_suppression.c plugins/non_max_suppression/non_max_suppression.h
plugins_non_max_suppression_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_non_max_suppression_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_non_max_suppression_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/non_max_suppression.c

CUDA_PLUGIN_KERNELS += plugins/non_max_suppression/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/non_max_suppression-cuda.la
plugins_non_max_suppression_cuda_la_SOURCES =
plugins_non_max_suppression_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_non_max_suppression_cuda_la_LIBADD = plugins/non_max_suppression/cuda.lo $(CUDA_LIBS)
endif
