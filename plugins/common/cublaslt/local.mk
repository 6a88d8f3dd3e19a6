# Matrix products by cuBLASLt, where its header is found: one module; a layer's part of it
# is its folder's cublaslt.c.
CUBLASLT_SOURCES += \
	plugins/common/cublaslt/bias.h \
	plugins/common/cublaslt/layer.c \
	plugins/common/cublaslt/library.c \
	plugins/common/cublaslt/library.h \
	plugins/common/cublaslt/module.c \
	plugins/common/cublaslt/module.h \
	plugins/common/cublaslt/product.c \
	plugins/common/cublaslt/product.h
CUDA_PLUGIN_KERNELS += plugins/common/cublaslt/bias.cu
if HAVE_CUBLASLT
plugin_LTLIBRARIES += plugins/cublaslt.la
plugins_cublaslt_la_SOURCES = $(CUBLASLT_SOURCES)
plugins_cublaslt_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_cublaslt_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_cublaslt_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cublaslt_la_LIBADD = plugins/common/cublaslt/bias.lo \
	plugins/common/dense_weight.lo \
	plugins/matrix_multiply/pack.lo plugins/rnn/persistent.lo plugins/rnn/wide.lo \
	$(CUDA_LIBS) $(DL_LIBS) $(PTHREAD_LIBS)
endif
