plugin_LTLIBRARIES += plugins/matrix_multiply.la
plugins_matrix_multiply_la_SOURCES = \
	plugins/matrix_multiply/exact.c \
	plugins/matrix_multiply/few_bits.c \
	plugins/matrix_multiply/few_bits.h \
	plugins/matrix_multiply/float.c \
	plugins/matrix_multiply/host.h \
	plugins/matrix_multiply/matrix_multiply.c \
	plugins/matrix_multiply/product.h
plugins_matrix_multiply_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_matrix_multiply_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_matrix_multiply_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/matrix_multiply.c

ONEDNN_SOURCES += plugins/matrix_multiply/onednn.c
CUBLASLT_SOURCES += \
	plugins/matrix_multiply/cublaslt.c \
	plugins/matrix_multiply/pack.h

CUDA_PLUGIN_KERNELS += \
	plugins/matrix_multiply/cuda.cu \
	plugins/matrix_multiply/exact.cu \
	plugins/matrix_multiply/few_bits.cu \
	plugins/matrix_multiply/gemv.cu \
	plugins/matrix_multiply/hopper.cu \
	plugins/matrix_multiply/pack.cu
EXTRA_DIST += plugins/matrix_multiply/cuda.cuh \
	plugins/matrix_multiply/few_bits.cuh \
	plugins/matrix_multiply/few_rows.cuh \
	plugins/matrix_multiply/few_walk.cuh \
	plugins/matrix_multiply/gemv.cuh \
	plugins/matrix_multiply/gemv_ring.cuh \
	plugins/matrix_multiply/gemv_walk.cuh \
	plugins/matrix_multiply/hopper.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/matrix_multiply-cuda.la
plugins_matrix_multiply_cuda_la_SOURCES =
plugins_matrix_multiply_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_matrix_multiply_cuda_la_LIBADD = \
	plugins/matrix_multiply/cuda.lo \
	plugins/matrix_multiply/exact.lo \
	plugins/matrix_multiply/few_bits.lo \
	plugins/matrix_multiply/gemv.lo \
	plugins/matrix_multiply/hopper.lo \
	plugins/matrix_multiply/pack.lo $(CUDA_LIBS) $(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/matrix_multiply/hopper.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
