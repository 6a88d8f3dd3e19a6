# Layers of 8 bits on tensor cores: one module for those that sum products, as their
# kernels are the same.
EXTRA_DIST += \
	plugins/common/quantized/channels.h \
	plugins/common/quantized/direct.cuh \
	plugins/common/quantized/factors.h \
	plugins/common/quantized/hopper.cuh \
	plugins/common/quantized/hopper.h \
	plugins/common/quantized/hopper_pack.cuh \
	plugins/common/quantized/quantize.cuh \
	plugins/common/quantized/quantized.h \
	plugins/common/quantized/quotient.h \
	plugins/common/quantized/round.cuh
QUANTIZED_KERNELS = \
	plugins/common/quantized/hopper.cu \
	plugins/common/quantized/module.cu
CUDA_PLUGIN_KERNELS += $(QUANTIZED_KERNELS)
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/quantized-cuda.la
plugins_quantized_cuda_la_SOURCES =
plugins_quantized_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_quantized_cuda_la_LIBADD = $(QUANTIZED_KERNELS:.cu=.lo) $(CUDA_LIBS) $(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/common/quantized/hopper.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
