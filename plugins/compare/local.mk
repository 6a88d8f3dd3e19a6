plugin_LTLIBRARIES += plugins/compare.la
plugins_compare_la_SOURCES = plugins/compare/compare.c
plugins_compare_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_compare_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_compare_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/compare.c

CUDA_PLUGIN_KERNELS += plugins/compare/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/compare-cuda.la
plugins_compare_cuda_la_SOURCES =
plugins_compare_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_compare_cuda_la_LIBADD = plugins/compare/cuda.lo $(CUDA_LIBS)
endif
