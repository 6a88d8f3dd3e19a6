plugin_LTLIBRARIES += plugins/shuffle.la
plugins_shuffle_la_SOURCES = plugins/shuffle/shuffle.c plugins/shuffle/shuffle.h
plugins_shuffle_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shuffle_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shuffle_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/shuffle.c

CUDA_PLUGIN_KERNELS += plugins/shuffle/each.cu
EXTRA_DIST += plugins/shuffle/each.h
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/shuffle-cuda.la
plugins_shuffle_cuda_la_SOURCES = plugins/shuffle/cuda.c $(MOVE_SOURCES)
plugins_shuffle_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_shuffle_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_shuffle_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_shuffle_cuda_la_LIBADD = plugins/common/move/move.lo plugins/shuffle/each.lo $(CUDA_LIBS) $(M_LIBS)
endif
