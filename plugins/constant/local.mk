plugin_LTLIBRARIES += plugins/constant.la
plugins_constant_la_SOURCES = plugins/constant/constant.c
plugins_constant_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_constant_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_constant_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/constant.c

CUDA_PLUGIN_KERNELS += plugins/constant/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/constant-cuda.la
plugins_constant_cuda_la_SOURCES = $(MOVE_SOURCES)
plugins_constant_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_constant_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_constant_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_constant_cuda_la_LIBADD = plugins/constant/cuda.lo plugins/common/move/move.lo \
	$(CUDA_LIBS) $(M_LIBS)
endif
