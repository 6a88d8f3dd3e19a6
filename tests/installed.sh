# SPDX-License-Identifier: Apache-2.0
# For tests of what is installed, to be sourced: what tap.sh gives, and in its scratch
# folder the package, by DESTDIR away from where it was configured for, found by its
# command, by pkg-config and by aclocal. Its plugins lie in $plugins.
. "${srcdir:-.}/tests/tap.sh"

root=$(cd "$scratch" && pwd -P)/root
(cd "$builddir" && $MAKE install DESTDIR="$root") >"$log" 2>&1
result $? 'make install takes DESTDIR'
pc=$(find "$root" -name strata-plugin-1.pc)
export PKG_CONFIG_PATH="${pc%/*}"
prefix=$(sed -n 's/^prefix = //p' "$builddir/Makefile")
plugins=$root$prefix/lib/strata/plugins-1
export PATH="$root$prefix/bin:$PATH" LD_LIBRARY_PATH="$root$prefix/lib:${LD_LIBRARY_PATH:-}"
export ACLOCAL_PATH="$root$prefix/share/aclocal"
export XDG_CACHE_HOME="$scratch"
unset STRATA_TRIAL STRATA_PLUGIN_DIR STRATA_PLUGIN_PATH MAKEFLAGS MFLAGS MAKELEVEL
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
strict='-O1 -Wall -Wextra -Wconversion -Wshadow -Wno-missing-field-initializers -Werror'
cd "$scratch" || exit 99
