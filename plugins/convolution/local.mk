plugin_LTLIBRARIES += plugins/convolution.la
plugins_convolution_la_SOURCES = plugins/convolution/convolution.c \
	plugins/convolution/band.h \
	plugins/convolution/core.h \
	plugins/convolution/depthwise.h \
	plugins/convolution/direct.h \
	plugins/convolution/gemm_tile.h \
	plugins/convolution/job.h \
	plugins/convolution/product.h \
	plugins/convolution/winograd/run.c \
	plugins/convolution/winograd/setup.c \
	plugins/convolution/winograd/transform.c \
	plugins/convolution/winograd/transform.h \
	plugins/convolution/winograd/winograd.h
plugins_convolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_convolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/convolution.c

ONEDNN_SOURCES += plugins/convolution/onednn.c
CUBLASLT_SOURCES += plugins/convolution/cublaslt.c

CONVOLUTION_KERNELS = \
	plugins/convolution/cuda.cu \
	plugins/convolution/cuda/depthwise.cu \
	plugins/convolution/cuda/direct.cu \
	plugins/convolution/cuda/gemm.cu \
	plugins/convolution/cuda/hopper.cu \
	plugins/convolution/cuda/mma.cu \
	plugins/convolution/cuda/patch.cu \
	plugins/convolution/cuda/plain.cu \
	plugins/convolution/cuda/reach.cu \
	plugins/convolution/cuda/simt.cu \
	plugins/convolution/cuda/stem/plain.cu \
	plugins/convolution/cuda/stem/stem.cu \
	plugins/convolution/cuda/stem/tf32.cu \
	plugins/convolution/cuda/stem/wgmma.cu \
	plugins/convolution/cuda/turned.cu \
	plugins/convolution/cuda/wgmma.cu
CUDA_PLUGIN_KERNELS += $(CONVOLUTION_KERNELS)
EXTRA_DIST += \
	plugins/convolution/cuda/convolution.cuh \
	plugins/convolution/cuda/depthwise.cuh \
	plugins/convolution/cuda/gemm.cuh \
	plugins/convolution/cuda/hopper.cuh \
	plugins/convolution/cuda/hopper_pack.cuh \
	plugins/convolution/cuda/patch.cuh \
	plugins/convolution/cuda/plain.cuh \
	plugins/convolution/cuda/reach.cuh \
	plugins/convolution/cuda/reach_block.cuh \
	plugins/convolution/cuda/reach_load.cuh \
	plugins/convolution/cuda/reach_plan.cuh \
	plugins/convolution/cuda/slide.cuh \
	plugins/convolution/cuda/stem/check.cuh \
	plugins/convolution/cuda/stem/float.cuh \
	plugins/convolution/cuda/stem/stem.cuh \
	plugins/convolution/cuda/stem/wgmma.cuh \
	plugins/convolution/cuda/stem/wgmma_host.cuh \
	plugins/convolution/cuda/turned.cuh \
	plugins/convolution/cuda/wgmma_tile.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/convolution-cuda.la
plugins_convolution_cuda_la_SOURCES =
plugins_convolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_cuda_la_LIBADD = $(CONVOLUTION_KERNELS:.cu=.lo) $(CUDA_LIBS) \
	$(PTHREAD_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/convolution/cuda/hopper.lo plugins/convolution/cuda/patch.lo \
	plugins/convolution/cuda/plain.lo plugins/convolution/cuda/reach.lo \
	plugins/convolution/cuda/stem/tf32.lo \
	plugins/convolution/cuda/stem/wgmma.lo plugins/convolution/cuda/turned.lo \
	plugins/convolution/cuda/wgmma.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a

# By cuDNN, where it is found. Without the library the module does not load, and the
# registry says why.
CUDNN_SOURCES = plugins/convolution/cudnn.c \
	plugins/convolution/cudnn/choice.c \
	plugins/convolution/cudnn/choice.h \
	plugins/convolution/cudnn/graph.c \
	plugins/convolution/cudnn/graph.h \
	plugins/convolution/cudnn/pack.h \
	plugins/convolution/cudnn/session.c \
	plugins/convolution/cudnn/session.h
CUDA_PLUGIN_KERNELS += plugins/convolution/cudnn/pack.cu
EXTRA_DIST += $(CUDNN_SOURCES)
if HAVE_CUDNN
plugin_LTLIBRARIES += plugins/convolution-cudnn.la
plugins_convolution_cudnn_la_SOURCES = $(CUDNN_SOURCES)
plugins_convolution_cudnn_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
plugins_convolution_cudnn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_convolution_cudnn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_cudnn_la_LIBADD = plugins/convolution/cudnn/pack.lo $(CUDA_LIBS) -lcudnn \
	$(PTHREAD_LIBS)
endif
