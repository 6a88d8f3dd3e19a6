plugin_LTLIBRARIES += plugins/shape.la
plugins_shape_la_SOURCES = plugins/shape/shape.c plugins/shape/shape.h
plugins_shape_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shape_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shape_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/shape.c

CUDA_PLUGIN_KERNELS += plugins/shape/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/shape-cuda.la
plugins_shape_cuda_la_SOURCES =
plugins_shape_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shape_cuda_la_LIBADD = plugins/shape/cuda.lo $(CUDA_LIBS)
endif
