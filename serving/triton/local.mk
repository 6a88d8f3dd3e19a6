# The backend for Triton Inference Server. The server defines the functions that it calls.
if ENABLE_TRITON
tritonbackenddir = $(tritondir)/strata
tritonbackend_LTLIBRARIES = serving/triton/libtriton_strata.la
serving_triton_libtriton_strata_la_SOURCES = \
	serving/triton/answer.c \
	serving/triton/answer.h \
	serving/triton/backend.c \
	serving/triton/backend.h \
	serving/triton/config.c \
	serving/triton/instance.c \
	serving/triton/io.c \
	serving/triton/model.c \
	serving/triton/sender.c \
	serving/triton/sequence.c \
	serving/triton/tensor.c \
	serving/triton/triton_abi.h
serving_triton_libtriton_strata_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
# Not with libstrata.la: libtool would link again when it is installed. In the build tree
# LD_LIBRARY_PATH tells where the library is.
serving_triton_libtriton_strata_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	'-Wl,-rpath,$$ORIGIN/../../..' -Wl,--no-as-needed,.libs/libstrata.so
serving_triton_libtriton_strata_la_LIBADD = $(JANSSON_LIBS) $(PTHREAD_LIBS)
serving_triton_libtriton_strata_la_DEPENDENCIES = libstrata.la
endif
EXTRA_DIST += serving/README.md serving/triton/abi_check.cc \
	scripts/triton.sh scripts/triton.txt scripts/triton-load.txt
nobase_dist_doc_DATA += serving/haproxy.cfg serving/k8s.yaml

# make check-triton-abi TRITON_HEADERS=FOLDER, which holds triton/core/*.h of a server.
.PHONY: check-triton-abi
check-triton-abi:
	$(MKDIR_P) serving/triton && sed -n \
		's/.*[ *]\(TRITON[A-Z]*_[A-Z][A-Za-z]*[a-z][A-Za-z]*\)(.*/SAME(\1);/p; s/^\(TRITON[A-Z]*_[A-Z][A-Za-z]*[a-z][A-Za-z]*\)(.*/SAME(\1);/p; s/^ *\(TRITONSERVER_\(TYPE\|MEMORY\|INSTANCEGROUPKIND\|LOG\|ERROR\|PARAMETER\|METRIC\|REQUEST\|RESPONSE\)_[A-Z0-9_]*\)\( = .*\|,\)*$$/EQUAL(\1);/p' \
		$(srcdir)/serving/triton/triton_abi.h >serving/triton/abi_names.h
	$(CXX) -std=c++17 -fsyntax-only -I$(srcdir) -Iserving/triton -I$(TRITON_HEADERS) \
		$(srcdir)/serving/triton/abi_check.cc
CLEANFILES += serving/triton/abi_names.h
