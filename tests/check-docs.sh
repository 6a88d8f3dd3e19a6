#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: what the pages say is so. Every code block of docs/writing-a-plugin.md and the C of
# README.md compile without a warning; options, files and links that a page names are there;
# the tables of variables and of limits are those of the sources; manual pages are whole.
. "${srcdir:-.}/tests/tap.sh"
page=$srcdir/docs/writing-a-plugin.md
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
quiet='-Wall -Wextra -Werror -Wno-unused -Wno-missing-field-initializers'

# A block is a file of its own; one without an #include gets those that the page takes for
# granted.
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

# ---- docs/porting.md ----------------------------------------------------------------------
awk -v folder="$scratch" '
    /^```(c|ini)$/ { kind = substr($0, 4); n++; next }
    /^```/ { kind = "" }
    kind { print >sprintf("%s/porting%d.%s", folder, n, kind) }
' "$srcdir/docs/porting.md"
: >"$log"
for block in "$scratch"/porting*.c; do
    # shellcheck disable=SC2086
    gcc -std=c11 $quiet -fsyntax-only -I"$srcdir/include" "$block" >>"$log" 2>&1
done
[ -e "$scratch/porting1.ini" ] && [ ! -s "$log" ]
result $? 'the C of docs/porting.md compiles'
for block in "$scratch"/porting*.ini; do
    "$strata" explain "$block" --costs analytic >"$scratch/out" 2>>"$log" ||
        cat "$scratch/out" >>"$log"
done
[ ! -s "$log" ]
result $? 'its networks can be planned'

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

# ---- links and files ------------------------------------------------------------------------
pages=$(cd "$srcdir" && find README.md docs bench examples -name '*.md')
links() { # links PAGE: what its relative links point to
    sed '/^```/,/^```/d' "$srcdir/$1" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//' |
        grep -v '://'
}
anchors() { # anchors FILE: of its headings, as GitHub makes them
    sed '/^```/,/^```/d' "$1" | sed -n 's/^##* //p' | tr A-Z a-z |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
: >"$log"
for page in $pages; do
    links "$page" | while read -r link; do
        file=${link%%#*} anchor=${link#"${link%%#*}"}
        target=$srcdir/$page
        [ -z "$file" ] || target=$srcdir/$(dirname "$page")/$file
        if [ ! -e "$target" ]; then
            echo "$page: $link is not there" >>"$log"
        elif [ -n "$anchor" ] && ! anchors "$target" | grep -qx -e "${anchor#\#}"; then
            echo "$page: $file has no heading $anchor" >>"$log"
        fi
    done
done
[ ! -s "$log" ]
result $? 'every link leads somewhere'

: >"$log"
for page in "$srcdir"/docs/*.md "$srcdir"/docs/onnx/*.md "$srcdir"/docs/log/*.md \
    "$srcdir"/docs/log/*/*.md; do
    name=${page#"$srcdir/docs/"}
    [ "$name" = README.md ] || links docs/README.md | grep -qxF "$name" ||
        links docs/log/README.md | sed 's,^,log/,' | grep -qxF "$name" ||
        echo "docs/README.md does not name $name" >>"$log"
done
[ ! -s "$log" ]
result $? 'the index names every page'

# Sources, or programs by the name of their source.
: >"$log"
for page in $pages; do
    sed '/^```/,/^```/d' "$srcdir/$page" |
        grep -oE '`(bench|calibrate|check|core|docs|engine|examples|formats|fuzz|include|ini|io|kernels|network|planner|plugins|registry|scripts|tests|tools)/[A-Za-z0-9_./-]*`' |
        tr -d '`' | sort -u | while read -r file; do
        for there in "$srcdir/$file" "$srcdir/$file".* "$builddir/$file"; do
            [ -e "$there" ] && continue 2
        done
        echo "$page: $file is not there" >>"$log"
    done
done
[ ! -s "$log" ]
result $? 'every file of the sources that the pages name is there'

: >"$log"
for page in $pages; do
    sed '/^```/,/^```/d' "$srcdir/$page" | grep -oE '`(strata|STRATA)_[A-Za-z0-9_]+' |
        tr -d '`' | sort -u | while read -r name; do
        grep -rqw -e "$name" "$srcdir/include" "$srcdir"/m4/*.m4 \
            "$srcdir/docs/environment.md" "$srcdir/serving/triton/backend.c" || echo "$page: $name is not declared" >>"$log"
    done
done
[ ! -s "$log" ]
result $? 'every name of the API and every metric on the pages is declared'

# Rows that end in a function and its file.
: >"$log"
sed -n 's/^| .* | `\([a-z_]*\)` | `\([a-z_/]*\.c\)` |$/\1 \2/p' "$srcdir/docs/architecture.md" \
    >"$scratch/walk"
while read -r function file; do
    grep -q "^[a-z].*[ *]$function(" "$srcdir/$file" ||
        echo "$file does not define $function" >>"$log"
done <"$scratch/walk"
[ "$(wc -l <"$scratch/walk")" -gt 20 ] && [ ! -s "$log" ]
result $? 'the functions of docs/architecture.md are where it says'

# ---- docs/environment.md ------------------------------------------------------------------
environment=$srcdir/docs/environment.md
library='core formats registry io ini network planner engine kernels plugins'
sources() { # sources FOLDER...: C and CUDA files of those that there are
    for folder; do
        [ ! -d "$srcdir/$folder" ] ||
            find "$srcdir/$folder" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'
    done
}
sources $library | xargs grep -hoE '(secure_)?getenv\("[A-Z_]+"\)' |
    sed 's/secure_getenv("\(.*\)")/\1 ignored/; s/getenv("\(.*\)")/\1 read/' |
    sort -u >"$scratch/read"
sed -n '/^## Variables$/,/^## Variables of libraries/s/^| `\([A-Z_]*\)` .* | \([a-z]*\) |$/\1 \2/p' \
    "$environment" | sort >"$scratch/told"
[ -s "$scratch/told" ] && diff "$scratch/read" "$scratch/told" >"$log"
result $? 'the table of variables is what the library reads'

: >"$log"
{
    sources calibrate check tools bench examples fuzz tests | xargs \
        grep -hoE '(getenv|env_or|setting|amount)\("[A-Za-z_]+"' | sed 's/.*"\(.*\)"/\1/'
    grep -hoE '\$\{?(STRATA_[A-Z_]+|BUILD_DIR|CONFIGURE_FLAGS)' "$srcdir/bootstrap" \
        "$srcdir"/scripts/*.sh "$srcdir"/tests/*.sh "$srcdir/.ci/run" 2>/dev/null |
        tr -d '${'
} | sort -u | while read -r name; do
    grep -q "^| .*\`$name\`.* | .* | .* |" "$environment" || echo "$name" >>"$log"
done
[ ! -s "$log" ]
result $? 'it has the variables of tests and scripts too'

# ---- docs/limits.md -----------------------------------------------------------------------
# | what | at most | `CONSTANT` or `fragment of code` | `file` | ...
number() { # number TEXT: "16 MiB", "2^31 - 1", "256 bytes"
    text=$(echo "$1" | sed -E 's/([0-9]+)\^([0-9]+)/(1<<\2)/
        s/ KiB.*/<<10/; s/ MiB.*/<<20/; s/ GiB.*/<<30/; s/ [a-z].*//')
    echo $(($text))
}
constant() { # constant FILE NAME: its value where it is defined
    text=$(sed -nE "s/^#define +$2 +//p; s/^(.*[ .{(])?$2 = ([^,;}]+).*/\2/p" "$1" |
        head -n 1 | sed -E 's,/\*.*,,; s/U?INT(32|64)_C//g; s/INT32_MAX/2147483647/
            s/\((size_t|int64_t|uint64_t)\)//g; s/([0-9])u/\1/g')
    [ -n "$text" ] && echo $(($text))
}
: >"$log"
sed -n 's/^| \(.*\) |$/\1/p' "$srcdir/docs/limits.md" | awk -F ' [|] ' '
    $3 ~ /^`/ { gsub(/`/, "", $3); gsub(/`/, "", $4); print $4 "|" $3 "|" $2 }' \
    >"$scratch/limits"
while IFS='|' read -r file name value; do
    case $name in
    *[!A-Za-z_]*) grep -qF -e "$name" "$srcdir/$file" &&
        case $name in *" $value") ;; *) false ;; esac ;;
    *) [ "$(constant "$srcdir/$file" "$name")" = "$(number "$value")" ] ;;
    esac || echo "$file: $name is not $value" >>"$log"
done <"$scratch/limits"
[ "$(wc -l <"$scratch/limits")" -gt 50 ] && [ ! -s "$log" ]
result $? 'the limits are those of the code'

# A constant named as a limit is on the page, or is none that anybody can meet.
inside='MAX_EXTENSIONS MAX_DYNAMIC MAX_AXES LIST_MAX MAX_LINE MAX_OPTIONS TEXT_MAX'
inside="$inside MAX_TYPES MAX_DEPTH MAX_NODES BENCH_MAX_NOTES ONEDNN_MAX_ARGUMENTS"
: >"$log"
sources core formats registry io ini network planner engine calibrate tools | xargs \
    grep -hoE '(#define +|enum \{ |, )(MAX_[A-Z_]+|[A-Z_]+_MAX(_[A-Z_]+)?) +(= *)?[0-9(I]' |
    grep -oE '[A-Z_]*MAX[A-Z_]*' | sort -u | while read -r name; do
    grep -q "\`$name\`" "$srcdir/docs/limits.md" || case " $inside " in
    *" $name "*) ;;
    *) echo "$name" >>"$log" ;;
    esac
done
[ ! -s "$log" ]
result $? 'no limit is missing'

# ---- operators ----------------------------------------------------------------------------
"$strata" import --operators -o md >"$scratch/wanted"
sed -n '/^| family /,/^$/p' "$srcdir/docs/onnx.md" | sed '/^$/d' | diff "$scratch/wanted" - >"$log"
result $? 'docs/onnx.md has the operators that are imported (strata import --operators -o md)'

# ---- manual pages -------------------------------------------------------------------------
claim='each manual page has its sections, and its examples a line each'
if [ -e "$builddir/tools/strata.1" ]; then
    : >"$log"
    for page in "$builddir"/tools/strata*.1; do
        command=$(basename "$page" .1 | sed 's/^strata-*//')
        for section in '"EXIT STATUS"' ENVIRONMENT FILES EXAMPLES '"SEE ALSO"'; do
            grep -qx -e ".SH $section" "$page" || echo "$page has no $section" >>"$log"
        done
        sed 's/ .*//' "$scratch/told" | while read -r name; do
            grep -q "^.fB$name.fR\$" "$page" || echo "$page does not name $name" >>"$log"
        done
        # shellcheck disable=SC2086
        "$strata" $command --help | sed '1,/^Examples:$/d; s/^  //' >"$scratch/wanted"
        awk '/^\.fi/ { on = 0 } on; /^\.nf/ { on = 1 }' "$page" | sed 's/\\-/-/g' |
            diff "$scratch/wanted" - >>"$log" && [ -s "$scratch/wanted" ] ||
            echo "$page: its examples are others" >>"$log"
    done
    [ ! -s "$log" ]
    result $? "$claim"
else
    skip "$claim" 'no help2man'
fi
finish
