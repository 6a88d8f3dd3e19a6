plugin_LTLIBRARIES += plugins/deconvolution.la
plugins_deconvolution_la_SOURCES = plugins/deconvolution/deconvolution.c \
	plugins/deconvolution/beside.h \
	plugins/deconvolution/phases.h
plugins_deconvolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_deconvolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_deconvolution_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/deconvolution.c

ONEDNN_SOURCES += plugins/deconvolution/onednn.c

DECONVOLUTION_KERNELS = \
	plugins/deconvolution/cuda.cu \
	plugins/deconvolution/cuda/direct.cu \
	plugins/deconvolution/cuda/hopper.cu \
	plugins/deconvolution/cuda/phases.cu \
	plugins/deconvolution/cuda/wgmma.cu
CUDA_PLUGIN_KERNELS += $(DECONVOLUTION_KERNELS)
EXTRA_DIST += \
	plugins/deconvolution/cuda/deconvolution.cuh \
	plugins/deconvolution/cuda/hopper.cuh \
	plugins/deconvolution/cuda/phases.cuh \
	plugins/deconvolution/cuda/sides.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/deconvolution-cuda.la
plugins_deconvolution_cuda_la_SOURCES =
plugins_deconvolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_deconvolution_cuda_la_LIBADD = $(DECONVOLUTION_KERNELS:.cu=.lo) $(CUDA_LIBS) \
	$(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/deconvolution/cuda/hopper.lo plugins/deconvolution/cuda/wgmma.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
