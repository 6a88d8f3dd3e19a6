plugin_LTLIBRARIES += plugins/pointwise.la
plugins_pointwise_la_SOURCES = \
	plugins/pointwise/pointwise.c \
	plugins/common/pointwise/program.c \
	plugins/common/pointwise/program.h
plugins_pointwise_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pointwise_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pointwise_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/pointwise.c

CUDA_PLUGIN_KERNELS += plugins/pointwise/compiled.cu plugins/pointwise/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/pointwise-cuda.la
plugins_pointwise_cuda_la_SOURCES = \
	plugins/pointwise/nvrtc.c \
	plugins/common/pointwise/program.c \
	plugins/pointwise/source.c
plugins_pointwise_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_pointwise_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_pointwise_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_pointwise_cuda_la_LIBADD = \
	plugins/pointwise/compiled.lo \
	plugins/pointwise/cuda.lo $(CUDA_LIBS) $(DL_LIBS) $(PTHREAD_LIBS)
endif
EXTRA_DIST += \
	plugins/pointwise/compiled.cuh \
	plugins/pointwise/kernels.inc \
	plugins/pointwise/machine.cuh \
	plugins/pointwise/nvrtc.h \
	plugins/pointwise/prelude.inc \
	plugins/pointwise/source.h
