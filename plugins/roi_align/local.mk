plugin_LTLIBRARIES += plugins/roi_align.la
plugins_roi_align_la_SOURCES = plugins/roi_align/roi_align.c plugins/roi_align/roi_align.h
plugins_roi_align_la_CFLAGS = $(CFLAGS_FOR_PLUGINS)
plugins_roi_align_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_roi_align_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/roi_align.c

CUDA_PLUGIN_KERNELS += plugins/roi_align/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/roi_align-cuda.la
plugins_roi_align_cuda_la_SOURCES =
plugins_roi_align_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_roi_align_cuda_la_LIBADD = plugins/roi_align/cuda.lo $(CUDA_LIBS)
endif
