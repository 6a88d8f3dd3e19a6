plugin_LTLIBRARIES += plugins/quantized_deconvolution.la
plugins_quantized_deconvolution_la_SOURCES = \
	plugins/quantized_deconvolution/quantized_deconvolution.c
plugins_quantized_deconvolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off
plugins_quantized_deconvolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_deconvolution_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/quantized_deconvolution.c
ONEDNN_SOURCES += plugins/quantized_deconvolution/onednn.c

CUDA_PLUGIN_KERNELS += plugins/quantized_deconvolution/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized_deconvolution-cuda.la
plugins_quantized_deconvolution_cuda_la_SOURCES =
plugins_quantized_deconvolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_deconvolution_cuda_la_LIBADD = plugins/quantized_deconvolution/cuda.lo \
	$(CUDA_LIBS)
endif
