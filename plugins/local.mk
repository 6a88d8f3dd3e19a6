# One module per layer. A plugin links nothing of ours; -z defs proves it.
LDFLAGS_FOR_PLUGINS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
if !SANITIZED
LDFLAGS_FOR_PLUGINS += -Wl,-z,defs
endif
CFLAGS_FOR_PLUGINS = $(AM_CFLAGS) -O3

# Kernels shared by layers, all static inline.
EXTRA_DIST += \
	plugins/concatenation/concatenation.h \
	plugins/convolution/band.h \
	plugins/convolution/core.h \
	plugins/convolution/direct.h \
	plugins/convolution/job.h \
	plugins/convolution/product.h \
	plugins/common/dense.h \
	plugins/common/element.h \
	plugins/convolution/gemm_tile.h \
	plugins/common/image.h \
	plugins/padding/padding.h \
	plugins/resize/resize.h \
	plugins/shuffle/shuffle.h \
	plugins/slice/slice.h \
	plugins/common/walk.h \
	plugins/common/window.h

plugin_LTLIBRARIES += plugins/activation.la
plugins_activation_la_SOURCES = plugins/activation/activation.c
plugins_activation_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_activation_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_activation_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/concatenation.la
plugins_concatenation_la_SOURCES = plugins/concatenation/concatenation.c
plugins_concatenation_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_concatenation_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_concatenation_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/constant.la
plugins_constant_la_SOURCES = plugins/constant/constant.c
plugins_constant_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_constant_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_constant_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/convolution.la
plugins_convolution_la_SOURCES = plugins/convolution/convolution.c
plugins_convolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_convolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/elementwise.la
plugins_elementwise_la_SOURCES = plugins/elementwise/elementwise.c
plugins_elementwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_elementwise_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_elementwise_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/fully_connected.la
plugins_fully_connected_la_SOURCES = plugins/fully_connected/fully_connected.c
plugins_fully_connected_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_fully_connected_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_fully_connected_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/identity.la
plugins_identity_la_SOURCES = plugins/identity/identity.c
plugins_identity_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_identity_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_identity_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/padding.la
plugins_padding_la_SOURCES = plugins/padding/padding.c
plugins_padding_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_padding_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_padding_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/pooling.la
plugins_pooling_la_SOURCES = plugins/pooling/pooling.c
plugins_pooling_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pooling_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooling_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/resize.la
plugins_resize_la_SOURCES = plugins/resize/resize.c
plugins_resize_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_resize_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_resize_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/scale.la
plugins_scale_la_SOURCES = plugins/scale/scale.c
plugins_scale_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_scale_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scale_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/shuffle.la
plugins_shuffle_la_SOURCES = plugins/shuffle/shuffle.c
plugins_shuffle_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shuffle_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shuffle_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/slice.la
plugins_slice_la_SOURCES = plugins/slice/slice.c
plugins_slice_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_slice_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_slice_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/softmax.la
plugins_softmax_la_SOURCES = plugins/softmax/softmax.c
plugins_softmax_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_softmax_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_softmax_la_LIBADD = $(M_LIBS)

# Faster impls for Convolution, FullyConnected and Pooling, where oneDNN is found.
if HAVE_DNNL
plugin_LTLIBRARIES += plugins/onednn.la
plugins_onednn_la_SOURCES = \
	plugins/common/onednn/module.c \
	plugins/convolution/onednn.c \
	plugins/common/onednn/epilogue.c \
	plugins/common/onednn/epilogue.h \
	plugins/fully_connected/onednn.c \
	plugins/pooling/onednn.c \
	plugins/common/onednn/primitive.c \
	plugins/common/onednn/primitive.h \
	plugins/common/onednn/state.c \
	plugins/common/onednn/window.h
plugins_onednn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_onednn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_onednn_la_LIBADD = $(DNNL_LIBS) $(M_LIBS)
endif

# CUDA impls: a module a layer, in one .cu file that extends the layer of the same name.
CUDA_PLUGIN_KERNELS =

CUDA_PLUGIN_KERNELS += plugins/activation/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/activation-cuda.la
plugins_activation_cuda_la_SOURCES =
plugins_activation_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_activation_cuda_la_LIBADD = plugins/activation/cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/constant/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/constant-cuda.la
plugins_constant_cuda_la_SOURCES =
plugins_constant_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_constant_cuda_la_LIBADD = plugins/constant/cuda.lo $(CUDA_LIBS)
endif

CONVOLUTION_KERNELS = \
	plugins/convolution/cuda.cu \
	plugins/convolution/cuda/depthwise.cu \
	plugins/convolution/cuda/direct.cu \
	plugins/convolution/cuda/gemm.cu \
	plugins/convolution/cuda/mma.cu \
	plugins/convolution/cuda/simt.cu \
	plugins/convolution/cuda/stem.cu \
	plugins/convolution/cuda/stem_wgmma.cu \
	plugins/convolution/cuda/wgmma.cu
CUDA_PLUGIN_KERNELS += $(CONVOLUTION_KERNELS)
EXTRA_DIST += \
	plugins/convolution/cuda/convolution.cuh \
	plugins/convolution/cuda/depthwise.cuh \
	plugins/convolution/cuda/gemm.cuh \
	plugins/convolution/cuda/slide.cuh \
	plugins/convolution/cuda/stem.cuh \
	plugins/convolution/cuda/stem_wgmma.cuh \
	plugins/convolution/cuda/wgmma.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/convolution-cuda.la
plugins_convolution_cuda_la_SOURCES =
plugins_convolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_cuda_la_LIBADD = $(CONVOLUTION_KERNELS:.cu=.lo) $(CUDA_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/convolution/cuda/stem_wgmma.lo plugins/convolution/cuda/wgmma.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a

CUDA_PLUGIN_KERNELS += plugins/elementwise/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/elementwise-cuda.la
plugins_elementwise_cuda_la_SOURCES =
plugins_elementwise_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_elementwise_cuda_la_LIBADD = plugins/elementwise/cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/fully_connected/cuda.cu plugins/common/dense_weight.cu
EXTRA_DIST += plugins/common/dense_weight.h
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/fully_connected-cuda.la
plugins_fully_connected_cuda_la_SOURCES =
plugins_fully_connected_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_fully_connected_cuda_la_LIBADD = plugins/fully_connected/cuda.lo \
	plugins/common/dense_weight.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/identity/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/identity-cuda.la
plugins_identity_cuda_la_SOURCES =
plugins_identity_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_identity_cuda_la_LIBADD = plugins/identity/cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/pooling/cuda.cu
EXTRA_DIST += plugins/pooling/fixed.cuh plugins/pooling/whole.cuh plugins/pooling/window.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/pooling-cuda.la
plugins_pooling_cuda_la_SOURCES =
plugins_pooling_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooling_cuda_la_LIBADD = plugins/pooling/cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/scale/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/scale-cuda.la
plugins_scale_cuda_la_SOURCES =
plugins_scale_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scale_cuda_la_LIBADD = plugins/scale/cuda.lo $(CUDA_LIBS)
endif

# Convolution by cuDNN, where it is found. Without the library the module does not load,
# and the registry says why.
CUDNN_SOURCES = \
	plugins/convolution/cudnn.c \
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

CUDA_PLUGIN_KERNELS += plugins/softmax/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/softmax-cuda.la
plugins_softmax_cuda_la_SOURCES =
plugins_softmax_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_softmax_cuda_la_LIBADD = plugins/softmax/cuda.lo $(CUDA_LIBS)
endif

# Layers that only move elements: C around the kernels of plugins/common/move/move.h.
MOVE_SOURCES = plugins/common/move/move.c plugins/common/move/move.h plugins/common/move/job.h
MOVE_KERNELS = plugins/common/move/move.cu plugins/shuffle/each.cu plugins/resize/linear.cu
CUDA_PLUGIN_KERNELS += $(MOVE_KERNELS)
EXTRA_DIST += plugins/shuffle/each.h plugins/resize/linear.h
if HAVE_CUDA
CPPFLAGS_FOR_CUDA_PLUGINS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

plugin_LTLIBRARIES += plugins/concatenation-cuda.la
plugins_concatenation_cuda_la_SOURCES = plugins/concatenation/cuda.c $(MOVE_SOURCES)
plugins_concatenation_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_concatenation_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_concatenation_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_concatenation_cuda_la_LIBADD = plugins/common/move/move.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/padding-cuda.la
plugins_padding_cuda_la_SOURCES = plugins/padding/cuda.c $(MOVE_SOURCES)
plugins_padding_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_padding_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_padding_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_padding_cuda_la_LIBADD = plugins/common/move/move.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/resize-cuda.la
plugins_resize_cuda_la_SOURCES = plugins/resize/cuda.c $(MOVE_SOURCES)
plugins_resize_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_resize_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_resize_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_resize_cuda_la_LIBADD = plugins/common/move/move.lo plugins/resize/linear.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/shuffle-cuda.la
plugins_shuffle_cuda_la_SOURCES = plugins/shuffle/cuda.c $(MOVE_SOURCES)
plugins_shuffle_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_shuffle_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shuffle_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shuffle_cuda_la_LIBADD = plugins/common/move/move.lo plugins/shuffle/each.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/slice-cuda.la
plugins_slice_cuda_la_SOURCES = plugins/slice/cuda.c $(MOVE_SOURCES)
plugins_slice_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_slice_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_slice_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_slice_cuda_la_LIBADD = plugins/common/move/move.lo $(CUDA_LIBS) $(M_LIBS)

endif

# Matrix products by cuBLASLt, where its header is found.
CUBLASLT_SOURCES = \
	plugins/common/cublaslt/product.c \
	plugins/common/cublaslt/product.h \
	plugins/common/cublaslt/library.c \
	plugins/common/cublaslt/library.h \
	plugins/common/cublaslt/module.c \
	plugins/common/cublaslt/module.h \
	plugins/convolution/cublaslt.c \
	plugins/fully_connected/cublaslt.c
if HAVE_CUBLASLT
plugin_LTLIBRARIES += plugins/cublaslt.la
plugins_cublaslt_la_SOURCES = $(CUBLASLT_SOURCES)
plugins_cublaslt_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_cublaslt_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_cublaslt_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cublaslt_la_LIBADD = plugins/common/dense_weight.lo $(CUDA_LIBS) $(DL_LIBS) \
	$(PTHREAD_LIBS)
endif

EXTRA_DIST += $(CUDA_PLUGIN_KERNELS)
if HAVE_CUDA
-include $(CUDA_PLUGIN_KERNELS:.cu=.d)
MOSTLYCLEANFILES += plugins/*.d
endif

# A build under a group-writable umask would make files that are not trusted.
all-local: $(plugin_LTLIBRARIES) $(device_LTLIBRARIES)
	-for folder in plugins kernels; do test ! -d $$folder/.libs || \
		chmod go-w $$folder/.libs $$folder/.libs/*.so; done
