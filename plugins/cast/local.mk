plugin_LTLIBRARIES += plugins/cast.la
plugins_cast_la_SOURCES = plugins/cast/avx2.c plugins/cast/avx512.c plugins/cast/cast.c \
	plugins/cast/cast.h plugins/cast/loops.h
plugins_cast_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_cast_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cast_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/cast.c

CUDA_PLUGIN_KERNELS += plugins/cast/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/cast-cuda.la
plugins_cast_cuda_la_SOURCES = $(MOVE_SOURCES)
plugins_cast_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_cast_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_cast_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_cast_cuda_la_LIBADD = plugins/cast/cuda.lo plugins/common/move/move.lo \
	$(CUDA_LIBS) $(M_LIBS)
endif
