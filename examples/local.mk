# Examples, installed beside the pages: sources, networks, small models. Weights of the
# networks in models come from elsewhere.
nobase_dist_doc_DATA += scripts/convert_models.py \
	$(wildcard $(addprefix $(srcdir)/examples/,*.c */*.c */*.md */*.py */*.txt */*.ini \
		*/*.idx */*.safetensors */images/*.pgm)) \
	$(wildcard $(addprefix $(srcdir)/examples/plugins/*/,Makefile *.c *.cc *.cu *.ini \
		*.onnx *.py))

# The demo uses the installed interface alone: public headers and libstrata.
noinst_PROGRAMS += examples/digits/demo
examples_digits_demo_SOURCES = examples/digits/demo.c
examples_digits_demo_LDADD = libstrata.la

noinst_PROGRAMS += examples/minimal
examples_minimal_SOURCES = examples/minimal.c
examples_minimal_LDADD = libstrata.la
noinst_PROGRAMS += examples/serve/serve
examples_serve_serve_SOURCES = examples/serve/serve.c
examples_serve_serve_LDADD = libstrata.la $(PTHREAD_LIBS)

# What the demo and the command need on the host: no CUDA, test, bench or manual page.
DEMO_NEEDS = examples/digits/demo$(EXEEXT) strata$(EXEEXT) $(HOST_PLUGINS)
HOST_PLUGINS = $(foreach m,$(plugin_LTLIBRARIES),$(if \
	$(findstring CUDA_LIBS,$(value $(call canonical_name,$(m))_LIBADD)),,$(m)))
canonical_name = $(subst -,_,$(subst .,_,$(subst /,_,$(1))))
.PHONY: demo demo-build
demo-build: config.h
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(DEMO_NEEDS)
	$(AM_V_at)$(trust_modules)
demo: demo-build
	STRATA_PLUGIN_DIR='$(abs_builddir)/plugins/.libs' \
		examples/digits/demo '$(srcdir)/examples/digits'

# Plugins outside the tree: each folder has its own Makefile, which asks pkg-config for
# Strata. Here they are built from copies, with the headers of this tree.
HOST_EXAMPLES = depthwise leaky_relu median_cpp separable
CUDA_EXAMPLES = fully_connected_cublas gaussian_cuda

BUILT_EXAMPLES = $(HOST_EXAMPLES)
if HAVE_CUDA
BUILT_EXAMPLES += $(CUDA_EXAMPLES)
SCAFFOLDS = scaffold 'scaffold cuda' ports 'ports cuda' \
	fast_convolution 'fast_convolution cuda' # folder, then goal
else
SCAFFOLDS = scaffold ports fast_convolution
endif
EXAMPLES_STAMP = examples/plugins/built/stamp
check_DATA += $(EXAMPLES_STAMP)
.PHONY: example-plugins
example-plugins: $(EXAMPLES_STAMP)
$(EXAMPLES_STAMP): $(BUILT_EXAMPLES:%=$(srcdir)/examples/plugins/%/*) \
		$(stratainclude_HEADERS) $(TEMPLATES) strata$(EXEEXT) \
		plugins/convolution.la
	$(AM_V_GEN)umask 022 && $(MKDIR_P) examples/plugins/built && \
	log=examples/plugins/built/log && { $(copy_examples) && $(make_examples); } \
		>$$log 2>&1 || { cat $$log; exit 1; }
	@touch $@
# And what new-layer writes: attributes and weights, several ports, an impl for another's.
copy_examples = for example in $(BUILT_EXAMPLES); do \
		copy=examples/plugins/built/$$example && $(MKDIR_P) $$copy && \
		cp -pf '$(srcdir)'/examples/plugins/$$example/* $$copy/ || exit 1; \
	done && ./strata new-layer Scaffold --cuda --attr slope:real=0.25:0..1 \
		--weight factor --weight shift:optional --force \
		-C examples/plugins/built/scaffold && \
	./strata new-layer Ports --cuda --in 3 --out 2 --weight factor --force \
		-C examples/plugins/built/ports && \
	STRATA_PLUGIN_DIR='$(abs_builddir)/plugins/.libs' ./strata new-layer \
		FastConvolution --cuda --extends core::Convolution --force \
		-C examples/plugins/built/fast_convolution
make_examples = for example in $(BUILT_EXAMPLES) $(SCAFFOLDS); do \
		PKG_CONFIG_PATH='$(abs_builddir)/pkgconfig' $(MAKE) -B --no-print-directory \
			-C examples/plugins/built/$$example CC='$(CC)' NVCC='$(NVCC)' \
			CFLAGS='$(WARNING_CFLAGS) -O3 $(OPENMP_CFLAGS)' \
			NVCCFLAGS='$(NVCC_OPTIMISE) $(NVCC_ARCH_FLAGS) $(NVCC_WERROR)' || exit 1; \
	done
mostlyclean-local:
	rm -rf examples/plugins/built
