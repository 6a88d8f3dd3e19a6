# The package `strata`. Built where Python's headers are; installed with --enable-python.
PYTHON_SOURCES = python/src/array.c python/src/call.c python/src/context.c \
	python/src/describe.c python/src/dlpack.h python/src/dtype.c python/src/error.c \
	python/src/exchange.c python/src/handle.c python/src/layer.c python/src/layer.h \
	python/src/layer_run.c python/src/layer_slot.c python/src/lease.c \
	python/src/module.c python/src/module.h python/src/network.c \
	python/src/process.c python/src/session.c python/src/stack.c \
	python/src/submit.c python/src/tensor.c
PYTHON_FILES = python/strata/__init__.py python/strata/__main__.py \
	python/strata/_check.pyi python/strata/_checking.py \
	python/strata/_command.py python/strata/_cuda.py python/strata/_errors.py python/strata/_layers.py \
	python/strata/_log.py python/strata/_network.py python/strata/_outputs.py \
	python/strata/_requests.py python/strata/_strata.pyi python/strata/py.typed
EXTRA_DIST += python/README.md python/pyproject.toml python/backend/strata_build.py \
	$(PYTHON_FILES) $(PYTHON_SOURCES)
PYTHON_EXTENSIONS = $(PYTHON_PACKAGE)/_strata.abi3.so $(PYTHON_PACKAGE)/_check.abi3.so
CLEANFILES += $(PYTHON_EXTENSIONS)
.PHONY: clean-python python-package wheel wheel-tree
clean-local: clean-python
clean-python:
	-rm -rf python/package python/tree python/tree-cuda python/stage python/dist

PYTHON_PACKAGE = python/package/strata
PYTHON_LIB = $(patsubst $(prefix)/%,%,$(libdir))

if HAVE_PYTHON
EXTRA_LTLIBRARIES += python/libstrata-python.la python/libstrata-python-check.la
python_libstrata_python_la_SOURCES = $(PYTHON_SOURCES)
python_libstrata_python_la_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/include \
	-I$(top_srcdir) $(PYTHON_CPPFLAGS)
python_libstrata_python_la_CFLAGS = $(AM_CFLAGS) -Wno-cast-function-type
python_libstrata_python_check_la_SOURCES = python/check/extension.c
python_libstrata_python_check_la_CPPFLAGS = $(python_libstrata_python_la_CPPFLAGS)
python_libstrata_python_check_la_CFLAGS = $(python_libstrata_python_la_CFLAGS)

# Where it is tried: libstrata is the build's, by LD_LIBRARY_PATH.
link_extension = $(CC) $(CFLAGS) $(SANITIZER_CFLAGS) -shared -Wl,--whole-archive \
	python/.libs/libstrata-python.a -Wl,--no-whole-archive -L.libs -lstrata \
	$(PTHREAD_LIBS) -Wl,-z,relro
$(PYTHON_PACKAGE)/_strata.abi3.so: python/libstrata-python.la libstrata.la
	$(AM_V_CCLD)$(MKDIR_P) $(PYTHON_PACKAGE) && $(link_extension) -o $@
# The checker is no part of libstrata: what it needs of it is in the extension.
link_check = $(CC) $(CFLAGS) $(SANITIZER_CFLAGS) $(OPENMP_CFLAGS) -shared \
	-Wl,--exclude-libs,libstrata-check.a:libstrata-internal.a \
	-Wl,--whole-archive python/.libs/libstrata-python-check.a \
	-Wl,--no-whole-archive .libs/libstrata-check.a .libs/libstrata-internal.a \
	$(libstrata_internal_la_LIBADD) -Wl,-z,relro
$(PYTHON_PACKAGE)/_check.abi3.so: python/libstrata-python-check.la libstrata-check.la \
		libstrata-internal.la
	$(AM_V_CCLD)$(MKDIR_P) $(PYTHON_PACKAGE) && $(link_check) -o $@
$(PYTHON_PACKAGE)/.files: $(PYTHON_FILES)
	$(AM_V_GEN)$(MKDIR_P) $(PYTHON_PACKAGE) && for f in $(PYTHON_FILES); do \
		cp "$(srcdir)/$$f" $(PYTHON_PACKAGE)/ || exit; done && touch $@
python-package: $(PYTHON_EXTENSIONS) $(PYTHON_PACKAGE)/.files

# As the package lies in a wheel: libstrata, its plugins and the command inside it, in each
# other's reach as in an installed tree. What needs CUDA is a wheel of its own, whose files
# join them.
PYTHON_STAGED = python/stage$(libdir)/strata
PYTHON_TREE = python/tree/strata/$(PYTHON_LIB)
PYTHON_TREE_CUDA = python/tree-cuda/strata/$(PYTHON_LIB)/strata
wheel-tree: all-am python-package
	rm -rf python/tree python/tree-cuda python/stage
	$(MAKE) $(AM_MAKEFLAGS) -s install DESTDIR='$(abs_builddir)/python/stage' >/dev/null
	$(MKDIR_P) python/tree/strata/bin $(PYTHON_TREE)/strata/plugins-1
	for f in $(PYTHON_FILES); do cp "$(srcdir)/$$f" python/tree/strata/ || exit; done
	cp 'python/stage$(bindir)/strata' python/tree/strata/bin/
	cp -L 'python/stage$(libdir)/libstrata.so.0' $(PYTHON_TREE)/
	for f in $(patsubst plugins/%.la,%.so,$(HOST_PLUGINS)); do \
		mv "$(PYTHON_STAGED)/plugins-1/$$f" $(PYTHON_TREE)/strata/plugins-1/ || exit; done
	$(link_extension) '-Wl,-rpath,$$ORIGIN/$(PYTHON_LIB)' \
		-o python/tree/strata/_strata.abi3.so
	cp $(PYTHON_PACKAGE)/_check.abi3.so python/tree/strata/
	if test -d $(PYTHON_STAGED)/devices-1; then $(MKDIR_P) $(PYTHON_TREE_CUDA)/plugins-1 && \
		cp -r $(PYTHON_STAGED)/devices-1 $(PYTHON_TREE_CUDA)/ && \
		cp $(PYTHON_STAGED)/plugins-1/*.so $(PYTHON_TREE_CUDA)/plugins-1/; fi
	find python/tree python/tree-cuda -name '*.la' -exec rm -f {} + 2>/dev/null || :
	strip --strip-unneeded python/tree/strata/bin/strata \
		$$(find python/tree python/tree-cuda -name '*.so' -o -name '*.so.0')
	rm -rf python/stage
wheel: config.h
	$(PYTHON) '$(srcdir)/python/backend/strata_build.py' . python/dist
else
python-package wheel:
	@echo "no Python.h of 3.11 or later: install python3-dev, then configure again"; exit 1
endif

if INSTALL_PYTHON
noinst_DATA = $(PYTHON_EXTENSIONS) $(PYTHON_PACKAGE)/.files
install-exec-local: python-package
	$(MKDIR_P) '$(DESTDIR)$(pyexecdir)/strata'
	$(link_extension) '-Wl,-rpath,$(libdir)' -o '$(DESTDIR)$(pyexecdir)/strata/_strata.abi3.so'
	$(INSTALL_PROGRAM) $(PYTHON_PACKAGE)/_check.abi3.so '$(DESTDIR)$(pyexecdir)/strata/'
	for f in $(PYTHON_FILES); do $(INSTALL_DATA) "$(srcdir)/$$f" \
		'$(DESTDIR)$(pyexecdir)/strata/' || exit; done
uninstall-local:
	rm -rf '$(DESTDIR)$(pyexecdir)/strata'
endif
