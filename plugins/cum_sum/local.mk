plugin_LTLIBRARIES += plugins/cum_sum.la
plugins_cum_sum_la_SOURCES = plugins/cum_sum/cum_sum.c
plugins_cum_sum_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_cum_sum_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cum_sum_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/cum_sum.c

CUDA_PLUGIN_KERNELS += plugins/cum_sum/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/cum_sum-cuda.la
plugins_cum_sum_cuda_la_SOURCES =
plugins_cum_sum_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cum_sum_cuda_la_LIBADD = plugins/cum_sum/cuda.lo $(CUDA_LIBS)
endif
