plugin_LTLIBRARIES += plugins/resize.la
plugins_resize_la_SOURCES = plugins/resize/resize.c plugins/resize/interpolate.c plugins/resize/nearest.c \
	plugins/resize/plan.h plugins/resize/windows.h plugins/resize/resize.h plugins/resize/interpolate.h
plugins_resize_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_resize_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_resize_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/resize.c

CUDA_PLUGIN_KERNELS += plugins/resize/linear.cu plugins/resize/taps.cu
EXTRA_DIST += plugins/resize/linear.h plugins/resize/taps_cuda.h
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/resize-cuda.la
plugins_resize_cuda_la_SOURCES = plugins/resize/cuda.c $(MOVE_SOURCES)
plugins_resize_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_resize_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_resize_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_resize_cuda_la_LIBADD = plugins/common/move/move.lo plugins/resize/linear.lo \
	plugins/resize/taps.lo $(CUDA_LIBS) $(M_LIBS)
endif
