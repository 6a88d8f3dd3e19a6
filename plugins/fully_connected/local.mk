plugin_LTLIBRARIES += plugins/fully_connected.la
plugins_fully_connected_la_SOURCES = plugins/fully_connected/fully_connected.c
plugins_fully_connected_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_fully_connected_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_fully_connected_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/fully_connected.c

ONEDNN_SOURCES += plugins/fully_connected/onednn.c
CUBLASLT_SOURCES += plugins/fully_connected/cublaslt.c

CUDA_PLUGIN_KERNELS += \
	plugins/fully_connected/cuda.cu \
	plugins/fully_connected/hopper.cu
EXTRA_DIST += plugins/fully_connected/hopper.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/fully_connected-cuda.la
plugins_fully_connected_cuda_la_SOURCES =
plugins_fully_connected_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_fully_connected_cuda_la_LIBADD = \
	plugins/fully_connected/cuda.lo \
	plugins/fully_connected/hopper.lo \
	plugins/common/dense_weight.lo $(CUDA_LIBS) $(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/fully_connected/hopper.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
