# A folder a layer, and a module a layer in each: host impls LAYER.so, CUDA impls
# LAYER-cuda.so, which extends it. A plugin links nothing of ours; -z defs proves it.
# ./bootstrap lists the folders' own local.mk in plugins/layers.mk: a new folder needs no
# line here.
LDFLAGS_FOR_PLUGINS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
if !SANITIZED
LDFLAGS_FOR_PLUGINS += -Wl,-z,defs
endif
LDFLAGS_FOR_PLUGINS += -Wl,--wrap=GOMP_parallel -Wl,plugins/common/team/libteam.a
CFLAGS_FOR_PLUGINS = $(AM_CFLAGS) -O3 $(VECTOR_CFLAGS)
CPPFLAGS_FOR_CUDA_PLUGINS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

# Filled by the folders. LAYER_CASES: the files of cases for the tests of layers.
LAYER_CASES =
CUDA_PLUGIN_KERNELS =
ONEDNN_SOURCES =
CUBLASLT_SOURCES =
include $(srcdir)/plugins/layers.mk

$(plugin_LTLIBRARIES) $(device_LTLIBRARIES) $(check_LTLIBRARIES): plugins/common/team/libteam.a
EXTRA_DIST += $(CUDA_PLUGIN_KERNELS)
if HAVE_CUDA
-include $(CUDA_PLUGIN_KERNELS:.cu=.d)
MOSTLYCLEANFILES += $(CUDA_PLUGIN_KERNELS:.cu=.d)
endif

# A build under a group-writable umask would make files that are not trusted.
trust_modules = -for folder in plugins kernels; do test ! -d $$folder/.libs || \
		chmod go-w $$folder/.libs $$folder/.libs/*.so; done
all-local: $(plugin_LTLIBRARIES) $(device_LTLIBRARIES)
	$(trust_modules)
EXTRA_DIST += plugins/README.md

# A new folder is not built, nor are its tests, before ./bootstrap has listed it; the module
# of one that went would still be found.
.PHONY: layers-listed
layers-listed:
	@cd $(srcdir) && for stanza in plugins/*/local.mk plugins/*/*/local.mk; do \
		grep -qF "/$$stanza" plugins/layers.mk || { \
			echo "$$stanza is not in plugins/layers.mk: run ./bootstrap" >&2; exit 1; }; \
	done
	@for module in plugins/*.la; do \
		case " $(plugin_LTLIBRARIES) " in *" $$module "*) continue ;; esac; \
		test ! -e $$module || echo "removing $$module, which has no stanza"; \
		rm -f $$module plugins/.libs/`basename $$module .la`.*; \
	done
all-local: layers-listed
