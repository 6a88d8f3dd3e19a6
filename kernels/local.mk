# The CUDA device module: everything that needs the toolkit's runtime. libstrata opens it
# on first use and has no CUDA dependency. Device code lies in .cu files, shared device
# code in .cuh; each .cu stands alone (no device linking).
CUDA_CPPFLAGS = -I$(CUDA_HOME)/include
CUDA_LDFLAGS = -L$(CUDA_HOME)/lib64 $(CUDA_RPATH)
CUDA_LIBS = $(CUDA_LDFLAGS) -lcudart
# Without C++'s runtime: host stubs must not need libstdc++.
NVCC_FLAGS = -std=$(NVCC_STD) $(NVCC_OPTIMISE) $(NVCC_ARCH_FLAGS) -I$(top_srcdir)/include -I$(top_srcdir) \
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
	kernels/lead.cu \
	kernels/reformat/any.cu \
	kernels/reformat/bytes.cu \
	kernels/reformat/pixel.cu \
	kernels/reformat/pixel_halves.cu \
	kernels/reformat/runs.cu \
	kernels/reformat/slab.cu \
	kernels/reformat/tile.cu \
	kernels/reformat/zip.cu
# Of the library, what the module needs too; hidden in it.
CUDA_SHARED_SOURCES = \
	core/alloc.c \
	core/status.c \
	core/text.c \
	core/tensor.c \
	formats/reformat/check.c \
	formats/reformat/shape.c

EXTRA_DIST += $(CUDA_SOURCES) \
	kernels/element.cuh \
	kernels/activate.cuh \
	kernels/layer.cuh \
	kernels/beside.cuh \
	kernels/counting.cuh \
	kernels/overlap.cuh \
	kernels/shared.cuh \
	kernels/reformat/bytes.cuh \
	kernels/reformat/common.cuh \
	kernels/reformat/pixel.cuh \
	kernels/reformat/slab.cuh \
	kernels/reformat/stages.cuh \
	kernels/reformat/tile.cuh \
	kernels/walk.cuh

# Jobs for the reformat kernels: no toolkit needed.
REFORMAT_MAKERS = \
	kernels/reformat/bytes.c \
	kernels/reformat/pixel.c \
	kernels/reformat/request.c \
	kernels/reformat/request.h \
	kernels/reformat/slab.c \
	kernels/reformat/slab.h \
	kernels/reformat/slab_plan.c \
	kernels/reformat/tile.c

if HAVE_CUDA
device_LTLIBRARIES = kernels/strata-cuda.la
kernels_strata_cuda_la_SOURCES = \
	kernels/checks.c \
	kernels/delay.h \
	kernels/lead.h \
	kernels/device.h \
	kernels/error.c \
	kernels/event.c \
	kernels/graph.c \
	kernels/memory.c \
	kernels/module.c \
	kernels/node.c \
	kernels/range.c \
	kernels/reformat/reformat.c \
	kernels/reformat/reformat.h \
	kernels/reformat/job.h \
	$(REFORMAT_MAKERS) \
	kernels/stream.c \
	kernels/stream.h \
	$(CUDA_SHARED_SOURCES)
kernels_strata_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
	-DCUDA_NEWEST_ARCH=$(CUDA_NEWEST_ARCH) \
	-DSTRATA_EXPORT_API='__attribute__((visibility("hidden")))'
kernels_strata_cuda_la_LDFLAGS = $(LDFLAGS_FOR_PLUGINS)
kernels_strata_cuda_la_LIBADD = $(CUDA_SOURCES:.cu=.lo) $(CUDA_LIBS) $(PTHREAD_LIBS)
MOSTLYCLEANFILES += $(CUDA_SOURCES:.cu=.d)
-include $(CUDA_SOURCES:.cu=.d)
else
EXTRA_DIST += kernels/checks.c kernels/delay.h kernels/lead.h kernels/device.h kernels/error.c kernels/event.c kernels/graph.c \
	kernels/memory.c kernels/module.c kernels/node.c kernels/range.c kernels/reformat/reformat.c kernels/reformat/reformat.h \
	kernels/reformat/job.h $(REFORMAT_MAKERS) \
	kernels/stream.c kernels/stream.h
endif

# What each .cu takes to compile.
.PHONY: build-times
build-times:
	@$(srcdir)/scripts/build-times.sh '$(MAKE)' $(if $(NVCC), \
		$(patsubst %.cu,%.lo,$(CUDA_SOURCES) $(CUDA_PLUGIN_KERNELS)))

# A relocatable folder for a GPU host: see scripts/gpu-bundle.sh.
GPU_BUNDLE = gpu-bundle
GPU_BUNDLE_CONTENT = \
	tests/cuda/check \
	tests/engine/context_check \
	tests/cuda/batch \
	tests/cuda/context \
	tests/cuda/decoder \
	tests/cuda/device \
	tests/cuda/faults \
	tests/cuda/foreign \
	tests/cuda/layers \
	tests/cuda/lost \
	tests/cuda/network \
	tests/cuda/reformat \
	tests/engine/save \
	tests/cuda/candidates \
	tests/layers/example_plugins \
	tests/engine/models \
	tests/tools/profiler \
	tests/engine/random_networks \
	tests/engine/threads \
	examples/digits/demo \
	examples/serve/serve \
	$(BENCHMARKS)
EXTRA_DIST += scripts/build-times.sh scripts/cuda-toolkit.sh scripts/cuda-toolkit.txt \
	scripts/gpu-bundle.sh scripts/gpu-check-plugins.sh \
	scripts/choose_runs.py \
	scripts/gpu-layers.sh \
	scripts/gpu-sanitize-plans.sh \
	scripts/gpu-sanitize.sh \
	scripts/sanitizer.sh
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
EXTRA_DIST += kernels/README.md
