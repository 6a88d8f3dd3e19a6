#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: every code block of docs/writing-a-plugin.md and the C of README.md compile without
# a warning, and every option that a page names is one. A block is a file of its own; one
# without an #include gets those that the page takes for granted.
. "${srcdir:-.}/tests/tap.sh"
page=$srcdir/docs/writing-a-plugin.md
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
quiet='-Wall -Wextra -Werror -Wno-unused -Wno-missing-field-initializers'

awk -v folder="$scratch" '
    /^```(c|cpp|cuda)$/ { kind = substr($0, 4); n++; first = 1
        file = sprintf("%s/%02d.%s", folder, n, kind == "cuda" ? "cu" : kind)
        next }
    /^```/ { kind = "" }
    kind && first && !/^#include/ {
        print "#include <string.h>\n#include <strata/layers.h>" >file }
    kind { print >file; first = 0; print FNR, $0 >(file ".lines") }
' "$page"

for block in "$scratch"/*.c "$scratch"/*.cpp "$scratch"/*.cu; do
    [ -e "$block" ] || continue
    line=$(sed -n '1s/ .*//p' "$block.lines")
    claim="the block at line $line compiles"
    case $block in
    *.c) command="gcc -std=c11 $quiet -fsyntax-only" ;;
    *.cpp) command="g++ -std=c++20 $quiet -fsyntax-only" ;;
    *.cu)
        if [ -z "$NVCC" ]; then
            skip "$claim" 'no nvcc'
            continue
        fi
        command="$NVCC -arch=sm_80 -Werror=all-warnings -c -o $scratch/out.o" ;;
    esac
    $command -I"$srcdir/include" "$block" >"$log" 2>&1
    result $? "$claim"
done

sed 1d "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" |
    cmp - "$scratch/01.c" >"$log" 2>&1
result $? 'the first block is the example'

# ---- README.md ----------------------------------------------------------------------------
{
    echo '#include <strata/strata.h>'
    echo 'void from_c(strata_handle *handle, strata_registry *registry, strata_network *network,'
    echo '    strata_engine *engine, strata_context *context, strata_error err) {'
    awk '/^## / { on = $0 == "## From C" } on && /^    / { sub(/\.\.\./, "(void)x;"); print }' \
        "$srcdir/README.md"
    echo '}'
} >"$scratch/from_c.c"
# shellcheck disable=SC2086
grep -q strata_context_run "$scratch/from_c.c" &&
    gcc -std=c11 $quiet -fsyntax-only -I"$srcdir/include" "$scratch/from_c.c" \
        >"$log" 2>&1
result $? 'the C of README.md compiles'

# Where a page says `strata SUBCOMMAND ... --option`, the help has that option.
: >"$log"
for page in "$srcdir"/README.md "$srcdir"/docs/*.md; do
    grep -oE '(^|[ `$(])strata [a-z][a-z-]*( [^`#|]*)?' "$page" |
        sed -E 's/^[^s]*strata ([a-z-]+)/\1/' | while read -r command rest; do
        "$builddir/strata" "$command" --help >"$scratch/help" 2>/dev/null || continue
        for option in $(echo "$rest" | grep -oE '(^| )--[a-z][a-z-]*'); do
            grep -qE -e "$option([ =,]|\$)" "$scratch/help" ||
                echo "${page##*/}: strata $command has no $option" >>"$log"
        done
    done
done
[ ! -s "$log" ]
result $? 'every option that the pages name is one'
finish
