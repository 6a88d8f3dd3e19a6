# SPDX-License-Identifier: Apache-2.0
# For tests of what is installed, to be sourced: what tap.sh gives, and in its scratch
# folder the package, by DESTDIR away from where it was configured for, found by its
# command, by pkg-config and by aclocal.
. "${srcdir:-.}/tests/tap.sh"

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
