# For projects that build Strata plugins. Installed where aclocal looks, or named by
#   ACLOCAL_PATH=$(pkg-config --variable=aclocaldir strata-plugin-1)
# serial 1

# STRATA_PLUGIN: after LT_INIT. Gives plugindir, STRATA_PLUGIN_CFLAGS and
# STRATA_PLUGIN_LDFLAGS, so that in Makefile.am
#   plugin_LTLIBRARIES = foo.la
#   foo_la_SOURCES = foo.c
#   foo_la_CFLAGS = $(STRATA_PLUGIN_CFLAGS)
#   foo_la_LDFLAGS = -module $(STRATA_PLUGIN_LDFLAGS)
AC_DEFUN([STRATA_PLUGIN], [
  PKG_CHECK_MODULES([STRATA_HEADERS], [strata-plugin-1])
  AC_ARG_WITH([plugindir],
    [AS_HELP_STRING([--with-plugindir=DIR], [where plugins go (default: Strata's own)])],
    [plugindir=$withval],
    [dnl Without FOLDER/.., which a stage (DESTDIR) would be given, too.
     plugindir=`$PKG_CONFIG --variable=plugindir strata-plugin-1 |
       sed -e ':again' -e 's,/@<:@^/.@:>@@<:@^/@:>@*/\.\./,/,' -e 'tagain'`])
  AC_SUBST([plugindir])
  STRATA_PLUGIN_CFLAGS="$STRATA_HEADERS_CFLAGS -fvisibility=hidden"
  AC_SUBST([STRATA_PLUGIN_CFLAGS])
  dnl A plugin links nothing of Strata's; -z defs proves it.
  STRATA_PLUGIN_LDFLAGS="-avoid-version -shared -no-undefined -Wl,-z,defs"
  AC_SUBST([STRATA_PLUGIN_LDFLAGS])
])

# STRATA_PLUGIN_CUDA: after STRATA_PLUGIN. Finds nvcc, which must be there. With the line
#   @STRATA_PLUGIN_CUDA_RULES@
# in Makefile.am, foo.lo is made of foo.cu:
#   foo_la_SOURCES =
#   foo_la_LIBADD = foo.lo $(STRATA_PLUGIN_CUDA_LIBS)
# NVCCFLAGS is the user's.
AC_DEFUN([STRATA_PLUGIN_CUDA], [
  AC_REQUIRE([STRATA_PLUGIN])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [its flags (default: -O3 -arch=sm_80)])
  AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
  AS_IF([test -z "$NVCC"],
    [AC_MSG_ERROR([nvcc is needed, of the CUDA toolkit; put its folder on PATH])])
  : ${NVCCFLAGS=-O3 -arch=sm_80}
  strata_cuda_home=`dirname "$NVCC"`
  strata_cuda_home=`cd "$strata_cuda_home/.." && pwd -P`
  STRATA_PLUGIN_CUDAFLAGS=`$PKG_CONFIG --variable=cudaflags strata-plugin-1`
  STRATA_PLUGIN_CUDA_LIBS="-L$strata_cuda_home/lib64 -L$strata_cuda_home/lib"
  STRATA_PLUGIN_CUDA_LIBS="$STRATA_PLUGIN_CUDA_LIBS -lcudart -lstdc++"
  AC_SUBST([STRATA_PLUGIN_CUDAFLAGS])
  AC_SUBST([STRATA_PLUGIN_CUDA_LIBS])
  dnl Libtool would take -fPIC from nvcc, hence -prefer-non-pic: cudaflags has it.
  STRATA_PLUGIN_CUDA_RULES='
.SUFFIXES: .cu .lo
.cu.lo:
	$(LIBTOOL) --tag=CC --mode=compile $(NVCC) -prefer-non-pic $(NVCCFLAGS) \
	  $(STRATA_PLUGIN_CUDAFLAGS) $(STRATA_HEADERS_CFLAGS) -I$(srcdir) -c -o $[]@ $<
'
  AC_SUBST([STRATA_PLUGIN_CUDA_RULES])
  AM_SUBST_NOTMAKE([STRATA_PLUGIN_CUDA_RULES])
])
