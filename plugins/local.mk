# One module per layer. A plugin links nothing of ours; -z defs proves it.
LDFLAGS_FOR_PLUGINS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
if !SANITIZED
LDFLAGS_FOR_PLUGINS += -Wl,-z,defs
endif
CFLAGS_FOR_PLUGINS = $(AM_CFLAGS) -O3

# Kernels shared by layers, all static inline.
EXTRA_DIST += \
	plugins/concatenation.h \
	plugins/convolution_band.h \
	plugins/convolution_core.h \
	plugins/convolution_direct.h \
	plugins/convolution_job.h \
	plugins/convolution_product.h \
	plugins/dense.h \
	plugins/element.h \
	plugins/gemm_tile.h \
	plugins/image.h \
	plugins/padding.h \
	plugins/resize.h \
	plugins/shuffle.h \
	plugins/slice.h \
	plugins/walk.h \
	plugins/window.h

plugin_LTLIBRARIES += plugins/activation.la
plugins_activation_la_SOURCES = plugins/activation.c
plugins_activation_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_activation_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_activation_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/concatenation.la
plugins_concatenation_la_SOURCES = plugins/concatenation.c
plugins_concatenation_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_concatenation_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_concatenation_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/constant.la
plugins_constant_la_SOURCES = plugins/constant.c
plugins_constant_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_constant_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_constant_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/convolution.la
plugins_convolution_la_SOURCES = plugins/convolution.c
plugins_convolution_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_convolution_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/elementwise.la
plugins_elementwise_la_SOURCES = plugins/elementwise.c
plugins_elementwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_elementwise_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_elementwise_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/fully_connected.la
plugins_fully_connected_la_SOURCES = plugins/fully_connected.c
plugins_fully_connected_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_fully_connected_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_fully_connected_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/identity.la
plugins_identity_la_SOURCES = plugins/identity.c
plugins_identity_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_identity_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_identity_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/padding.la
plugins_padding_la_SOURCES = plugins/padding.c
plugins_padding_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_padding_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_padding_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/pooling.la
plugins_pooling_la_SOURCES = plugins/pooling.c
plugins_pooling_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pooling_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooling_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/resize.la
plugins_resize_la_SOURCES = plugins/resize.c
plugins_resize_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_resize_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_resize_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/scale.la
plugins_scale_la_SOURCES = plugins/scale.c
plugins_scale_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_scale_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scale_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/shuffle.la
plugins_shuffle_la_SOURCES = plugins/shuffle.c
plugins_shuffle_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shuffle_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shuffle_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/slice.la
plugins_slice_la_SOURCES = plugins/slice.c
plugins_slice_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_slice_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_slice_la_LIBADD = $(M_LIBS)

plugin_LTLIBRARIES += plugins/softmax.la
plugins_softmax_la_SOURCES = plugins/softmax.c
plugins_softmax_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_softmax_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_softmax_la_LIBADD = $(M_LIBS)

# Faster impls for Convolution, FullyConnected and Pooling, where oneDNN is found.
if HAVE_DNNL
plugin_LTLIBRARIES += plugins/onednn.la
plugins_onednn_la_SOURCES = \
	plugins/onednn.c \
	plugins/onednn_convolution.c \
	plugins/onednn_epilogue.c \
	plugins/onednn_epilogue.h \
	plugins/onednn_inner_product.c \
	plugins/onednn_pooling.c \
	plugins/onednn_primitive.c \
	plugins/onednn_primitive.h \
	plugins/onednn_state.c \
	plugins/onednn_window.h
plugins_onednn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_onednn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_onednn_la_LIBADD = $(DNNL_LIBS) $(M_LIBS)
endif

# CUDA impls: a module a layer, in one .cu file that extends the layer of the same name.
CUDA_PLUGIN_KERNELS =

CUDA_PLUGIN_KERNELS += plugins/activation_cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/activation-cuda.la
plugins_activation_cuda_la_SOURCES =
plugins_activation_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_activation_cuda_la_LIBADD = plugins/activation_cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/constant_cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/constant-cuda.la
plugins_constant_cuda_la_SOURCES =
plugins_constant_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_constant_cuda_la_LIBADD = plugins/constant_cuda.lo $(CUDA_LIBS)
endif

CONVOLUTION_KERNELS = \
	plugins/convolution_cuda.cu \
	plugins/convolution_cuda_depthwise.cu \
	plugins/convolution_cuda_direct.cu \
	plugins/convolution_cuda_gemm.cu \
	plugins/convolution_cuda_mma.cu \
	plugins/convolution_cuda_simt.cu \
	plugins/convolution_cuda_stem.cu \
	plugins/convolution_cuda_stem_wgmma.cu \
	plugins/convolution_cuda_wgmma.cu
CUDA_PLUGIN_KERNELS += $(CONVOLUTION_KERNELS)
EXTRA_DIST += \
	plugins/convolution_cuda.cuh \
	plugins/convolution_cuda_depthwise.cuh \
	plugins/convolution_cuda_gemm.cuh \
	plugins/convolution_cuda_slide.cuh \
	plugins/convolution_cuda_stem.cuh \
	plugins/convolution_cuda_stem_wgmma.cuh \
	plugins/convolution_cuda_wgmma.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/convolution-cuda.la
plugins_convolution_cuda_la_SOURCES =
plugins_convolution_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_cuda_la_LIBADD = $(CONVOLUTION_KERNELS:.cu=.lo) $(CUDA_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/convolution_cuda_stem_wgmma.lo plugins/convolution_cuda_wgmma.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a

CUDA_PLUGIN_KERNELS += plugins/elementwise_cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/elementwise-cuda.la
plugins_elementwise_cuda_la_SOURCES =
plugins_elementwise_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_elementwise_cuda_la_LIBADD = plugins/elementwise_cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/fully_connected_cuda.cu kernels/dense_weight.cu
EXTRA_DIST += kernels/dense_weight.h
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/fully_connected-cuda.la
plugins_fully_connected_cuda_la_SOURCES =
plugins_fully_connected_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_fully_connected_cuda_la_LIBADD = plugins/fully_connected_cuda.lo \
	kernels/dense_weight.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/identity_cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/identity-cuda.la
plugins_identity_cuda_la_SOURCES =
plugins_identity_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_identity_cuda_la_LIBADD = plugins/identity_cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/pooling_cuda.cu
EXTRA_DIST += plugins/pooling_fixed.cuh plugins/pooling_whole.cuh plugins/pooling_window.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/pooling-cuda.la
plugins_pooling_cuda_la_SOURCES =
plugins_pooling_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pooling_cuda_la_LIBADD = plugins/pooling_cuda.lo $(CUDA_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/scale_cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/scale-cuda.la
plugins_scale_cuda_la_SOURCES =
plugins_scale_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_scale_cuda_la_LIBADD = plugins/scale_cuda.lo $(CUDA_LIBS)
endif

# Convolution by cuDNN, where it is found. Without the library the module does not load,
# and the registry says why.
CUDNN_SOURCES = \
	plugins/convolution_cudnn.c \
	plugins/cudnn_choice.c \
	plugins/cudnn_choice.h \
	plugins/cudnn_graph.c \
	plugins/cudnn_graph.h \
	plugins/cudnn_pack.h \
	plugins/cudnn_session.c \
	plugins/cudnn_session.h
CUDA_PLUGIN_KERNELS += plugins/cudnn_pack.cu
EXTRA_DIST += $(CUDNN_SOURCES)
if HAVE_CUDNN
plugin_LTLIBRARIES += plugins/convolution-cudnn.la
plugins_convolution_cudnn_la_SOURCES = $(CUDNN_SOURCES)
plugins_convolution_cudnn_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
plugins_convolution_cudnn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_convolution_cudnn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_convolution_cudnn_la_LIBADD = plugins/cudnn_pack.lo $(CUDA_LIBS) -lcudnn \
	$(PTHREAD_LIBS)
endif

CUDA_PLUGIN_KERNELS += plugins/softmax_cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/softmax-cuda.la
plugins_softmax_cuda_la_SOURCES =
plugins_softmax_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_softmax_cuda_la_LIBADD = plugins/softmax_cuda.lo $(CUDA_LIBS)
endif

# Layers that only move elements: C around the kernels of kernels/move.h.
MOVE_SOURCES = kernels/move.c kernels/move.h kernels/move_job.h
MOVE_KERNELS = kernels/move.cu kernels/shuffle_each.cu kernels/resize_linear.cu
CUDA_PLUGIN_KERNELS += $(MOVE_KERNELS)
EXTRA_DIST += kernels/shuffle_each.h kernels/resize_linear.h
if HAVE_CUDA
CPPFLAGS_FOR_CUDA_PLUGINS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

plugin_LTLIBRARIES += plugins/concatenation-cuda.la
plugins_concatenation_cuda_la_SOURCES = plugins/concatenation_cuda.c $(MOVE_SOURCES)
plugins_concatenation_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_concatenation_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_concatenation_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_concatenation_cuda_la_LIBADD = kernels/move.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/padding-cuda.la
plugins_padding_cuda_la_SOURCES = plugins/padding_cuda.c $(MOVE_SOURCES)
plugins_padding_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_padding_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_padding_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_padding_cuda_la_LIBADD = kernels/move.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/resize-cuda.la
plugins_resize_cuda_la_SOURCES = plugins/resize_cuda.c $(MOVE_SOURCES)
plugins_resize_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_resize_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_resize_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_resize_cuda_la_LIBADD = kernels/move.lo kernels/resize_linear.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/shuffle-cuda.la
plugins_shuffle_cuda_la_SOURCES = plugins/shuffle_cuda.c $(MOVE_SOURCES)
plugins_shuffle_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_shuffle_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shuffle_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shuffle_cuda_la_LIBADD = kernels/move.lo kernels/shuffle_each.lo $(CUDA_LIBS) $(M_LIBS)

plugin_LTLIBRARIES += plugins/slice-cuda.la
plugins_slice_cuda_la_SOURCES = plugins/slice_cuda.c $(MOVE_SOURCES)
plugins_slice_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_slice_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_slice_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_slice_cuda_la_LIBADD = kernels/move.lo $(CUDA_LIBS) $(M_LIBS)

endif

# Matrix products by cuBLASLt, where its header is found.
CUBLASLT_SOURCES = \
	kernels/cublaslt.c \
	kernels/cublaslt.h \
	kernels/cublaslt_library.c \
	kernels/cublaslt_library.h \
	plugins/cublaslt.c \
	plugins/cublaslt.h \
	plugins/cublaslt_convolution.c \
	plugins/cublaslt_fully_connected.c
if HAVE_CUBLASLT
plugin_LTLIBRARIES += plugins/cublaslt.la
plugins_cublaslt_la_SOURCES = $(CUBLASLT_SOURCES)
plugins_cublaslt_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_cublaslt_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_cublaslt_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cublaslt_la_LIBADD = kernels/dense_weight.lo $(CUDA_LIBS) $(DL_LIBS) \
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
