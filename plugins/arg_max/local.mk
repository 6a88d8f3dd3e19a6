plugin_LTLIBRARIES += plugins/arg_max.la
plugins_arg_max_la_SOURCES = plugins/arg_max/arg_max.c
plugins_arg_max_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_arg_max_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_arg_max_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/arg_max.c

CUDA_PLUGIN_KERNELS += plugins/arg_max/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/arg_max-cuda.la
plugins_arg_max_cuda_la_SOURCES =
plugins_arg_max_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_arg_max_cuda_la_LIBADD = plugins/arg_max/cuda.lo $(CUDA_LIBS)
endif
