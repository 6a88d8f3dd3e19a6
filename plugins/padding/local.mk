plugin_LTLIBRARIES += plugins/padding.la
plugins_padding_la_SOURCES = plugins/padding/padding.c plugins/padding/padding.h
plugins_padding_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_padding_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_padding_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/padding.c

if HAVE_CUDA
plugin_LTLIBRARIES += plugins/padding-cuda.la
plugins_padding_cuda_la_SOURCES = plugins/padding/cuda.c $(MOVE_SOURCES)
plugins_padding_cuda_la_CPPFLAGS = $(CPPFLAGS_FOR_CUDA_PLUGINS)
plugins_padding_cuda_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_padding_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_padding_cuda_la_LIBADD = plugins/common/move/move.lo $(CUDA_LIBS) $(M_LIBS)
endif
