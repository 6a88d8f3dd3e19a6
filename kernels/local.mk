# The CUDA device module: everything that needs the toolkit's runtime. libstrata opens it
# on first use and has no CUDA dependency. Device code lies in .cu files, shared device
# code in .cuh; each .cu stands alone (no device linking).
CUDA_CPPFLAGS = -I$(CUDA_HOME)/include
CUDA_LDFLAGS = -L$(CUDA_HOME)/lib64 $(CUDA_RPATH)
CUDA_LIBS = $(CUDA_LDFLAGS) -lcudart
# Without C++'s runtime: host stubs must not need libstdc++.
NVCC_FLAGS = -std=$(NVCC_STD) -O3 $(NVCC_ARCH_FLAGS) -I$(top_srcdir)/include -I$(top_srcdir) \
	--compiler-options=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
	$(NVCC_WERROR) $(NVCCFLAGS)

# Layers' tables are written with designated initialisers, as in C.
NVCC_STD = c++20

AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =

SUFFIXES = .cu
.cu.lo:
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile $(NVCC) -prefer-non-pic \
		$(NVCC_FLAGS) -MMD -MP -MF $(@:.lo=.d) -MT $@ -c -o $@ $<

CUDA_SOURCES = \
	kernels/delay.cu \
	kernels/reformat_any.cu \
	kernels/reformat_pixel.cu \
	kernels/reformat_runs.cu \
	kernels/reformat_slab.cu \
	kernels/reformat_tile.cu
# Of the library, what the module needs too; hidden in it.
CUDA_SHARED_SOURCES = \
	core/alloc.c \
	core/status.c \
	core/tensor.c \
	formats/reformat_check.c \
	formats/reformat_shape.c

EXTRA_DIST += $(CUDA_SOURCES) \
	kernels/element.cuh \
	kernels/layer.cuh \
	kernels/reformat_common.cuh \
	kernels/reformat_slab.cuh \
	kernels/reformat_tile.cuh \
	kernels/walk.cuh

# Jobs for the reformat kernels: no toolkit needed.
REFORMAT_MAKERS = \
	kernels/reformat_pixel.c \
	kernels/reformat_request.c \
	kernels/reformat_request.h \
	kernels/reformat_slab.c \
	kernels/reformat_slab_plan.c \
	kernels/reformat_tile.c

if HAVE_CUDA
device_LTLIBRARIES = kernels/strata-cuda.la
kernels_strata_cuda_la_SOURCES = \
	kernels/checks.c \
	kernels/delay.h \
	kernels/device.h \
	kernels/error.c \
	kernels/event.c \
	kernels/graph.c \
	kernels/memory.c \
	kernels/module.c \
	kernels/range.c \
	kernels/reformat.c \
	kernels/reformat.h \
	kernels/reformat_job.h \
	$(REFORMAT_MAKERS) \
	kernels/stream.c \
	kernels/stream.h \
	$(CUDA_SHARED_SOURCES)
kernels_strata_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
	-DSTRATA_EXPORT_API='__attribute__((visibility("hidden")))'
kernels_strata_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
kernels_strata_cuda_la_LIBADD = $(CUDA_SOURCES:.cu=.lo) $(CUDA_LIBS) $(PTHREAD_LIBS)
MOSTLYCLEANFILES += kernels/*.d
-include $(CUDA_SOURCES:.cu=.d)
else
EXTRA_DIST += kernels/checks.c kernels/delay.h kernels/device.h kernels/error.c kernels/event.c kernels/graph.c \
	kernels/memory.c kernels/module.c kernels/range.c kernels/reformat.c kernels/reformat.h \
	kernels/reformat_job.h $(REFORMAT_MAKERS) \
	kernels/stream.c kernels/stream.h
endif

# A relocatable folder for a GPU host: see scripts/gpu-bundle.sh.
GPU_BUNDLE = gpu-bundle
GPU_BUNDLE_CONTENT = \
	tests/test_check_cuda \
	tests/test_context_check \
	tests/test_cuda_batch \
	tests/test_cuda_context \
	tests/test_cuda_device \
	tests/test_cuda_faults \
	tests/test_cuda_layers \
	tests/test_cuda_network \
	tests/test_cuda_reformat \
	tests/test_engine_save \
	tests/test_example_plugins \
	tests/test_models \
	tests/test_profiler \
	tests/test_random_networks \
	tests/test_threads \
	examples/digits/demo \
	examples/serve/serve \
	$(BENCHMARKS)
EXTRA_DIST += scripts/cuda-toolkit.sh scripts/cuda-toolkit.txt \
	scripts/gpu-bundle.sh scripts/gpu-check-plugins.sh \
	scripts/gpu-sanitize.sh
.PHONY: gpu-bundle
if HAVE_CUDA
gpu-bundle: all $(GPU_BUNDLE_CONTENT) tests/cuda_faulty.la tests/cuda_trial.la \
		tests/launch_count.la \
		example-plugins
	$(srcdir)/scripts/gpu-bundle.sh '$(abs_builddir)' '$(GPU_BUNDLE)' \
		$(GPU_BUNDLE_CONTENT)
else
gpu-bundle:
	@echo 'gpu-bundle: configured without CUDA' >&2; exit 1
endif
