plugin_LTLIBRARIES += plugins/grid_sample.la
plugins_grid_sample_la_SOURCES = plugins/grid_sample/grid_sample.c plugins/grid_sample/grid_sample.h
# No contraction: the reference, whose coordinates it must share, is not compiled with FMA.
plugins_grid_sample_la_CFLAGS = $(CFLAGS_FOR_PLUGINS) -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
plugins_grid_sample_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_grid_sample_la_LIBADD = $(M_LIBS)
LAYER_CASES += tests/plugins/grid_sample.c

CUDA_PLUGIN_KERNELS += plugins/grid_sample/cuda.cu
if HAVE_CUDA
plugin_LTLIBRARIES += plugins/grid_sample-cuda.la
plugins_grid_sample_cuda_la_SOURCES =
plugins_grid_sample_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
plugins_grid_sample_cuda_la_LIBADD = plugins/grid_sample/cuda.lo $(CUDA_LIBS)
endif
