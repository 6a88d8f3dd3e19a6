plugin_LTLIBRARIES += plugins/concatenation.la
plugins_concatenation_la_SOURCES = plugins/concatenation/concatenation.c plugins/concatenation/concatenation.h
plugins_concatenation_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_concatenation_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_concatenation_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/concatenation.c

if HAVE_CUDA
plugin_LTLIBRARIES += plugins/concatenation-cuda.la
plugins_concatenation_cuda_la_SOURCES = plugins/concatenation/cuda.c $(MOVE_SOURCES)
plugins_concatenation_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_concatenation_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_concatenation_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_concatenation_cuda_la_LIBADD = plugins/common/move/move.lo $(CUDA_LIBS) $(M_LIBS)
endif
