plugin_LTLIBRARIES += plugins/rnn.la
plugins_rnn_la_SOURCES = \
	plugins/rnn/bytes/count.c \
	plugins/rnn/bytes/digits.c \
	plugins/rnn/cell.h \
	plugins/rnn/cell_avx512.h \
	plugins/rnn/code.c \
	plugins/rnn/code.h \
	plugins/rnn/definition.c \
	plugins/rnn/definition.h \
	plugins/rnn/host.c \
	plugins/rnn/host.h \
	plugins/rnn/input.c \
	plugins/rnn/job.h \
	plugins/rnn/pack.c \
	plugins/rnn/rnn.c \
	plugins/rnn/rnn.h \
	plugins/rnn/steps.c \
	plugins/rnn/sums.h
plugins_rnn_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fno-math-errno -fno-trapping-math
plugins_rnn_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_rnn_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/rnn.c

CUBLASLT_SOURCES += \
	plugins/rnn/cublaslt.c \
	plugins/rnn/persistent.h

CUDA_PLUGIN_KERNELS += \
	plugins/rnn/cuda.cu \
	plugins/rnn/persistent.cu \
	plugins/rnn/wide.cu
EXTRA_DIST += \
	plugins/rnn/launch.cuh \
	plugins/rnn/persistent.cuh \
	plugins/rnn/wide.cuh
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/rnn-cuda.la
plugins_rnn_cuda_la_SOURCES =
plugins_rnn_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_rnn_cuda_la_LIBADD = plugins/rnn/cuda.lo $(CUDA_LIBS)
endif
# Instructions that only this chip has, whatever else is compiled for.
plugins/rnn/wide.lo: \
	NVCC_ARCH_FLAGS = -gencode=arch=compute_90a,code=sm_90a
