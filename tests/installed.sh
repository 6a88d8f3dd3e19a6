# SPDX-License-Identifier: Apache-2.0
# For tests of what is installed, to be sourced: results as TAP, a scratch folder, and in
# it the package, by DESTDIR away from where it was configured for, found by its command,
# by pkg-config and by aclocal.
srcdir=$(cd "${srcdir:-.}" && pwd) builddir=${builddir:-.} CC=${CC:-cc} MAKE=${MAKE:-make}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
number=0 failed=0
log=$scratch/log
umask 022

result() { # result STATUS CLAIM: the log is shown after a failure
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=1
        echo "not ok $number - $2"
        sed 's/^/# /' "$log" | tail -n 60
    fi
}
skip() { # skip CLAIM REASON
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

root=$scratch/root
(cd "$builddir" && $MAKE install DESTDIR="$root") >"$log" 2>&1
result $? 'make install takes DESTDIR'
pc=$(find "$root" -name strata-plugin-1.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$root"
prefix=$(sed -n 's/^prefix=//p' "$pc")
export PATH="$root$prefix/bin:$PATH" LD_LIBRARY_PATH="$root$prefix/lib:${LD_LIBRARY_PATH:-}"
export STRATA_PLUGIN_DIR="$root$prefix/lib/strata/plugins-1"
export ACLOCAL_PATH="$root$prefix/share/aclocal"
unset STRATA_PLUGIN_PATH MAKEFLAGS MFLAGS MAKELEVEL
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
strict='-O1 -Wall -Wextra -Wconversion -Wshadow -Wno-missing-field-initializers -Werror'
cd "$scratch" || exit 99
