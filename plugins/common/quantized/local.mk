# What layers of 8 bits share. hopper.cu is linked where its kernels are used.
EXTRA_DIST += \
	plugins/common/quantized/amx.h \
	plugins/common/quantized/channels.h \
	plugins/common/quantized/direct.cuh \
	plugins/common/quantized/factors.h \
	plugins/common/quantized/few.h \
	plugins/common/quantized/hopper.cuh \
	plugins/common/quantized/hopper.h \
	plugins/common/quantized/hopper_impls.cuh \
	plugins/common/quantized/hopper_pack.cuh \
	plugins/common/quantized/operands.h \
	plugins/common/quantized/quick.cuh \
	plugins/common/quantized/quantize.cuh \
	plugins/common/quantized/quantized.h \
	plugins/common/quantized/quotient.h \
	plugins/common/quantized/resident.cuh \
	plugins/common/quantized/resident_kernel.cuh \
	plugins/common/quantized/resident_memory.cuh \
	plugins/common/quantized/round.cuh \
	plugins/common/quantized/single.cuh \
	plugins/common/quantized/words.cuh
QUANTIZED_HOPPER_KERNELS = \
	plugins/common/quantized/few.cu \
	plugins/common/quantized/hopper.cu \
	plugins/common/quantized/resident.cu
CUDA_PLUGIN_KERNELS += $(QUANTIZED_HOPPER_KERNELS)
# Instructions that only this chip has, whatever else is compiled for.
$(QUANTIZED_HOPPER_KERNELS:.cu=.lo): \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
