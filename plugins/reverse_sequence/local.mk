plugin_LTLIBRARIES += plugins/reverse_sequence.la
plugins_reverse_sequence_la_SOURCES = plugins/reverse_sequence/reverse_sequence.c plugins/reverse_sequence/reverse_sequence.h
plugins_reverse_sequence_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_reverse_sequence_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_reverse_sequence_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/reverse_sequence.c

CUDA_PLUGIN_KERNELS += plugins/reverse_sequence/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/reverse_sequence-cuda.la
plugins_reverse_sequence_cuda_la_SOURCES =
plugins_reverse_sequence_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_reverse_sequence_cuda_la_LIBADD = plugins/reverse_sequence/cuda.lo $(CUDA_LIBS)
endif
