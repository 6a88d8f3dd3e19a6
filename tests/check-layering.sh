#!/bin/sh
# TAP: includes point in the allowed direction, and nothing else.
#   formats -> core's types        registry -> core         io -> core
#   plugins -> public headers, kernels    kernels -> public headers, core's device
#   core -> formats, registry, io by their own headers
#   check -> core, formats, registry              nobody -> tools
srcdir=${srcdir:-.}
cd "$srcdir" || exit 99
failed=0 number=0

# check CLAIM FOLDER ALLOWED-PATTERN: quoted and project includes of FOLDER.
check() {
    number=$((number + 1))
    bad=$(grep -HnE '^#include ("|<strata/)' "$2"/*.[ch] "$2"/*.cu "$2"/*.cuh 2>/dev/null |
        sed 's/^\([^:]*:[0-9]*\):#include [<"]\([^">]*\)[">].*/\1 \2/' |
        grep -vE " ($3)\$")
    if [ -z "$bad" ]; then
        echo "ok $number - $1"
    else
        failed=1
        echo "not ok $number - $1"
        echo "$bad" | sed 's/^/# /'
    fi
}

public='strata/(strata|batcher|plugin|layers)\.h'
types='core/(status|alloc|checked|team|tensor)\.h'
echo 1..8
check "formats sees core's types only" formats "$public|$types|formats/[a-z0-9_]+\.h"
check 'registry sees core, not formats, io or plans' registry \
    "$public|$types|core/(installed|names|text)\.h|registry/[a-z0-9_]+\.h"
check "io sees core's types only" io "$public|$types|io/[a-z0-9_]+\.h"
check 'plugins see the public headers, kernels and their own' plugins \
    'strata/(plugin|layers)\.h|(plugins|kernels)/[a-z0-9_]+\.(h|cuh)'
check "kernels see core's device and the reformat table only" kernels \
    "$public|core/(status|device)\.h|formats/reformat_kernels\.h|kernels/[a-z0-9_]+\.(h|cuh)"
check 'core reaches others by their interfaces' core \
    "$public|core/[a-z0-9_]+\.h|formats/(format|reformat)\.h|registry/registry\.h|io/(weights|image|file|engine_file)\.h"
check 'check sees core, formats and registry' check \
    "$public|(core|formats|registry|check)/[a-z0-9_]+\.h"
check 'examples use the public interface' examples/digits "$public"
exit $failed
