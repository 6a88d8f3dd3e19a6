plugin_LTLIBRARIES += plugins/slice.la
plugins_slice_la_SOURCES = plugins/slice/slice.c plugins/slice/slice.h
plugins_slice_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_slice_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_slice_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/slice.c

if HAVE_CUDA
plugin_LTLIBRARIES += plugins/slice-cuda.la
plugins_slice_cuda_la_SOURCES = plugins/slice/cuda.c $(MOVE_SOURCES)
plugins_slice_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_slice_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_slice_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_slice_cuda_la_LIBADD = plugins/common/move/move.lo $(CUDA_LIBS) $(M_LIBS)
endif
