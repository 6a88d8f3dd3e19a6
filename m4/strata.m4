# Checks of this project's own.

# STRATA_SANITIZERS: --enable-sanitizers=address,undefined|thread
AC_DEFUN([STRATA_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST],
      [address,undefined or thread: instrument the library, plugins and tests])],
    [strata_sanitizers=$enableval], [strata_sanitizers=])
  AS_CASE([$strata_sanitizers],
    [yes], [strata_sanitizers=address,undefined],
    [no], [strata_sanitizers=])
  AS_IF([test -n "$strata_sanitizers"], [
    AX_CHECK_COMPILE_FLAG([-fsanitize=$strata_sanitizers], [],
      [AC_MSG_ERROR([$CC does not take -fsanitize=$strata_sanitizers])])
    SANITIZER_CFLAGS="-fsanitize=$strata_sanitizers -fno-omit-frame-pointer"
    SANITIZER_CFLAGS="$SANITIZER_CFLAGS -fno-sanitize-recover=undefined"
  ])
  AC_SUBST([SANITIZER_CFLAGS])
  AM_CONDITIONAL([SANITIZED], [test -n "$strata_sanitizers"])
])

# STRATA_WARNINGS: the set that must be clean; --enable-werror makes them errors.
AC_DEFUN([STRATA_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [warnings are errors (used by CI)])], [],
    [enable_werror=no])
  AX_APPEND_COMPILE_FLAGS([-Wall -Wextra -Wconversion -Wvla -Wshadow dnl
    -Wmissing-prototypes -Wno-missing-field-initializers], [WARNING_CFLAGS])
  AS_IF([test "$enable_werror" = yes], [AS_VAR_APPEND([WARNING_CFLAGS], [" -Werror"])])
  AC_SUBST([WARNING_CFLAGS])
  # An -O level takes back one before it, not these: CFLAGS comes last, with -O2, whose
  # vectoriser takes no loop of unknown length.
  AX_APPEND_COMPILE_FLAGS([-ftree-vectorize -fvect-cost-model=dynamic dnl
    -funswitch-loops -fpeel-loops], [VECTOR_CFLAGS], [-Werror])
  AC_SUBST([VECTOR_CFLAGS])
  # Tests count the steps that code takes, where the compiler can count them; sanitizers
  # add steps of their own.
  COUNTING_CFLAGS=
  AS_IF([test -z "$strata_sanitizers"],
    [AX_CHECK_COMPILE_FLAG([-fsanitize-coverage=trace-pc],
      [COUNTING_CFLAGS=-fsanitize-coverage=trace-pc])])
  AC_SUBST([COUNTING_CFLAGS])
])

# STRATA_OPENMP: threads inside kernels. libgomp is not instrumented for ThreadSanitizer,
# which would report its barriers as races, so that build runs kernels on one thread.
# Without, nobody reads what a pragma alone reads.
AC_DEFUN([STRATA_OPENMP], [
  AC_OPENMP
  strata_openmp=${ac_cv_prog_c_openmp:-no}
  AS_CASE([,$strata_sanitizers,],
    [*,thread,*], [OPENMP_CFLAGS= strata_openmp="no (thread sanitizer)"])
  AS_IF([test "$enable_openmp" = no], [strata_openmp=no])
  AS_IF([test -z "$OPENMP_CFLAGS"], [
    OPENMP_CFLAGS="-Wno-unknown-pragmas -Wno-unused-variable -Wno-unused-parameter"
  ], [
    strata_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $OPENMP_CFLAGS"
    AC_CHECK_FUNCS([omp_pause_resource])
    CFLAGS=$strata_saved_CFLAGS
  ])
  AC_SUBST([OPENMP_CFLAGS])
])

# STRATA_OPTIONAL(name, VAR, pkg-config modules, what it gives)
AC_DEFUN([STRATA_OPTIONAL], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--without-$1], [build without $4])], [],
    [with_$1=auto])
  have_$1=no
  AS_IF([test "$with_$1" != no], [
    PKG_CHECK_MODULES([$2], [$3], [have_$1=yes], [
      AS_IF([test "$with_$1" = yes], [AC_MSG_ERROR([$4 asked for, but $3 not found])])])
  ])
  AS_IF([test "$have_$1" = yes],
    [AC_DEFINE([HAVE_$2], [1], [Define if $4 are supported])])
  AM_CONDITIONAL([HAVE_$2], [test "$have_$1" = yes])
])

# STRATA_OPTIONAL_LIB(name, VAR, library, function, header, what it gives)
AC_DEFUN([STRATA_OPTIONAL_LIB], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--without-$1], [build without $6])], [],
    [with_$1=auto])
  have_$1=no
  AS_IF([test "$with_$1" != no], [
    AC_CHECK_HEADER([$5], [
      AC_CHECK_LIB([$3], [$4], [have_$1=yes $2_LIBS=-l$3])])
    AS_IF([test "$with_$1$have_$1" = yesno],
      [AC_MSG_ERROR([$6 asked for, but lib$3 not found])])
  ])
  AC_SUBST([$2_LIBS])
  AS_IF([test "$have_$1" = yes],
    [AC_DEFINE([HAVE_$2], [1], [Define if $6 are built])])
  AM_CONDITIONAL([HAVE_$2], [test "$have_$1" = yes])
])

# STRATA_CUDA: --with-cuda=auto|DIR|no finds a toolkit: nvcc, its headers and libraries.
AC_DEFUN([STRATA_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=auto|DIR|no], [CUDA toolkit (default: auto)])], [],
    [with_cuda=auto])
  strata_cuda=no
  NVCC=
  AS_IF([test "$with_cuda" != no], [
    AS_CASE([$with_cuda],
      [auto|yes], [AC_PATH_PROG([NVCC], [nvcc], [],
                    [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
      [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])
    AS_IF([test -n "$NVCC"], [
      AC_MSG_CHECKING([for the CUDA toolkit's release])
      strata_cuda_release=`"$NVCC" --version | sed -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p'`
      AC_MSG_RESULT([${strata_cuda_release:-unknown}])
      CUDA_HOME=`dirname "$NVCC"`
      CUDA_HOME=`cd "$CUDA_HOME/.." && pwd -P`
      strata_cuda="$strata_cuda_release in $CUDA_HOME"
    ], [
      AS_IF([test "$with_cuda" = auto],
        [AC_MSG_NOTICE([no CUDA toolkit found: host only])],
        [AC_MSG_ERROR([--with-cuda=$with_cuda: no bin/nvcc found there])])
    ])
  ])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
      [GPU architectures to compile for, the last as PTX too (default:
       80,86,89,90,100,120; one is quick to build, 90-virtual quicker: PTX alone,
       which the driver compiles)])], [],
    [with_cuda_arch=80,86,89,90,100,120])
  # nvcc makes the same of 8.9's PTX as of 8.0's, and of 12.0's as of 10.0's, and writing
  # PTX takes long: these share it (docs/log/build-times.md).
  NVCC_ARCH_FLAGS=
  CUDA_NEWEST_ARCH=0
  strata_archs=`echo "$with_cuda_arch" | tr ',' ' '`
  for strata_arch in $strata_archs; do
    strata_ptx=${strata_arch%-virtual} strata_code=sm_$strata_arch
    AS_CASE([$strata_ptx],
      [@<:@0-9@:>@@<:@0-9@:>@|@<:@0-9@:>@@<:@0-9@:>@@<:@0-9@:>@], [],
      [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch: write numbers, as 80,90, or 90-virtual])])
    AS_IF([test "$strata_ptx" -gt "$CUDA_NEWEST_ARCH"], [CUDA_NEWEST_ARCH=$strata_ptx])
    AS_CASE([$strata_arch], [*-virtual], [strata_code=compute_$strata_ptx])
    AS_CASE(["$strata_arch of $strata_archs "],
      ["89 of "*80" "*], [strata_ptx=80],
      ["120 of "*100" "*], [strata_ptx=100])
    strata_flag="-gencode=arch=compute_$strata_ptx,code=$strata_code"
    NVCC_ARCH_FLAGS="$NVCC_ARCH_FLAGS $strata_flag"
  done
  strata_flag="-gencode=arch=compute_$strata_ptx,code=compute_$strata_ptx"
  AS_CASE([$strata_arch], [*-virtual], [],
    [NVCC_ARCH_FLAGS="$NVCC_ARCH_FLAGS $strata_flag"])
  # Code for several architectures is large: a third of it, where nvcc can pack it tighter.
  AS_CASE([$with_cuda_arch], [*[[\ ,]]*],
    [AS_IF([$NVCC --help 2>/dev/null | grep -e --compress-mode >/dev/null],
       [NVCC_ARCH_FLAGS="$NVCC_ARCH_FLAGS -compress-mode=size"])])
  # Kernels that are compiled, not run. The host's half of a .cu is compiled as ever, and
  # what the front end warns of is the same.
  AC_ARG_ENABLE([quick-kernels],
    [AS_HELP_STRING([--enable-quick-kernels],
      [leave most optimisation of kernels out: they compile in a third of the time and
       run slowly (used by CI)])], [], [enable_quick_kernels=no])
  NVCC_OPTIMISE=-O3
  AS_IF([test -n "$NVCC" && test "$enable_quick_kernels" = yes],
    [AS_IF([$NVCC --help | grep -e --Ofast-compile >/dev/null],
       [NVCC_OPTIMISE="-O3 --Ofast-compile=max"],
       [AC_MSG_WARN([$NVCC has no --Ofast-compile: kernels are optimised])])])
  AC_SUBST([NVCC_OPTIMISE])
  NVCC_WERROR=
  AS_IF([test "$enable_werror" = yes],
    [NVCC_WERROR="-Werror=all-warnings --compiler-options=-Werror"])
  AC_SUBST([NVCC])
  AC_SUBST([NVCC_ARCH_FLAGS])
  AC_SUBST([CUDA_NEWEST_ARCH])
  AC_SUBST([NVCC_WERROR])
  AC_SUBST([CUDA_HOME])
  # A toolkit that the dynamic loader does not know is found by where it lies.
  CUDA_RPATH=
  AS_IF([test -n "$NVCC"], [
    AC_MSG_CHECKING([whether the loader finds the CUDA libraries])
    AS_IF([PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
           grep "libcudart\.so\.${strata_cuda_release%%.*} " >/dev/null],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no: modules look in $CUDA_HOME/lib64])
       CUDA_RPATH=-Wl,-rpath,$CUDA_HOME/lib64])
  ])
  AC_SUBST([CUDA_RPATH])
  AS_IF([test -n "$NVCC"], [AC_DEFINE([HAVE_CUDA], [1], [Define if CUDA impls are built])])
  AM_CONDITIONAL([HAVE_CUDA], [test -n "$NVCC"])
  strata_cublaslt=no
  AS_IF([test -n "$NVCC"], [
    strata_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS -I$CUDA_HOME/include"
    AC_CHECK_HEADER([cublasLt.h], [strata_cublaslt=yes])
    CPPFLAGS=$strata_cppflags
  ])
  AM_CONDITIONAL([HAVE_CUBLASLT], [test "$strata_cublaslt" = yes])
])

# STRATA_CUDNN: --without-cudnn; the toolkit's folders are looked in too. The graph API
# with descriptions of devices is of 9.8.
AC_DEFUN([STRATA_CUDNN], [
  AC_ARG_WITH([cudnn],
    [AS_HELP_STRING([--without-cudnn], [build without cuDNN impls of Convolution])], [],
    [with_cudnn=auto])
  have_cudnn=no
  AS_IF([test -n "$NVCC" && test "$with_cudnn" != no], [
    strata_cppflags=$CPPFLAGS
    strata_ldflags=$LDFLAGS
    CPPFLAGS="$CPPFLAGS -I$CUDA_HOME/include"
    LDFLAGS="$LDFLAGS -L$CUDA_HOME/lib64"
    AC_CHECK_DECL([CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION], [
      AC_CHECK_LIB([cudnn], [cudnnBackendExecute], [have_cudnn=yes])],
      [], [[#include <cudnn.h>]])
    CPPFLAGS=$strata_cppflags
    LDFLAGS=$strata_ldflags
  ])
  AS_IF([test "$with_cudnn$have_cudnn" = yesno],
    [AC_MSG_ERROR([cuDNN asked for, but CUDA with cuDNN 9.8 or later not found])])
  AM_CONDITIONAL([HAVE_CUDNN], [test "$have_cudnn" = yes])
])

# STRATA_PC_FOLDERS: pc_prefix, pc_libdir, ... for the .pc files. What is below the prefix
# is written by ${prefix}, and that by the place of the .pc file, so that flags are right
# for a tree that was moved or staged. What is elsewhere stays absolute.
AC_DEFUN([STRATA_PC_FOLDERS], [
  AX_RECURSIVE_EVAL([\${prefix}], [strata_prefix])
  _STRATA_PC_FOLDER([exec_prefix], [\${exec_prefix}])
  _STRATA_PC_FOLDER([libdir], [$libdir])
  _STRATA_PC_FOLDER([includedir], [$includedir])
  _STRATA_PC_FOLDER([datarootdir], [$datarootdir])
  _STRATA_PC_FOLDER([pkgconfigdir], [$pkgconfigdir])
  AS_IF([test -n "$strata_below"],
    [pc_prefix='${pcfiledir}'`AS_ECHO(["$strata_below"]) |
       sed 's,//*@<:@^/@:>@*,/..,g'`],
    [pc_prefix=$strata_prefix])
  AC_SUBST([pc_prefix])
])

# _STRATA_PC_FOLDER(name, value): pc_name, and strata_below: its path below the prefix
AC_DEFUN([_STRATA_PC_FOLDER], [
  AX_RECURSIVE_EVAL([$2], [pc_$1])
  strata_below=
  AS_CASE([$pc_$1/],
    [*/../*], [],
    ["$strata_prefix"/*],
      [strata_below=${pc_$1@%:@"$strata_prefix"}
       pc_$1="\${prefix}$strata_below"])
  AC_SUBST([pc_$1])
])

# STRATA_PYTHON: the package is built where there are headers of Python 3.11 or later, and
# installed with --enable-python.
AC_DEFUN([STRATA_PYTHON], [
  AC_ARG_ENABLE([python],
    [AS_HELP_STRING([--enable-python], [install the Python package])], [],
    [enable_python=no])
  AM_PATH_PYTHON([3.11], [], [PYTHON=: strata_python=no])
  AS_IF([test "$PYTHON" != :], [
    PYTHON_CPPFLAGS=-isystem`$PYTHON -c 'import sysconfig; print(sysconfig.get_path("include"))'`
    strata_saved_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $PYTHON_CPPFLAGS"
    AC_CHECK_HEADER([Python.h], [strata_python=$PYTHON_VERSION],
      [strata_python="no (no Python.h)"])
    CPPFLAGS=$strata_saved_CPPFLAGS
  ])
  AC_SUBST([PYTHON_CPPFLAGS])
  AS_CASE([$enable_python:$strata_python],
    [yes:no*], [AC_MSG_ERROR([--enable-python: no Python.h of 3.11 or later])])
  AM_CONDITIONAL([HAVE_PYTHON], [test "${strata_python%% *}" != no])
  AM_CONDITIONAL([INSTALL_PYTHON], [test "$enable_python" = yes])
])
