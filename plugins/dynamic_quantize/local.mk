plugin_LTLIBRARIES += plugins/dynamic_quantize.la
plugins_dynamic_quantize_la_SOURCES = plugins/dynamic_quantize/dynamic_quantize.c
plugins_dynamic_quantize_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
plugins_dynamic_quantize_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_dynamic_quantize_la_LIBADD = $(BYTES_LIBS)
LAYER_CASES += tests/plugins/dynamic_quantize.c

CUDA_PLUGIN_KERNELS += plugins/dynamic_quantize/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/dynamic_quantize-cuda.la
plugins_dynamic_quantize_cuda_la_SOURCES =
plugins_dynamic_quantize_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_dynamic_quantize_cuda_la_LIBADD = plugins/dynamic_quantize/cuda.lo $(CUDA_LIBS)
endif
