plugin_LTLIBRARIES += plugins/triangle.la
plugins_triangle_la_SOURCES = plugins/triangle/triangle.c
plugins_triangle_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_triangle_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_triangle_la_LIBADD = $(POINTWISE_LIBS)
LAYER_CASES += tests/plugins/triangle.c

CUDA_PLUGIN_KERNELS += plugins/triangle/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/triangle-cuda.la
plugins_triangle_cuda_la_SOURCES =
plugins_triangle_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_triangle_cuda_la_LIBADD = plugins/triangle/cuda.lo $(CUDA_LIBS)
endif
