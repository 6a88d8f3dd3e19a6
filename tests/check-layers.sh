#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: a built-in layer is whole. Each folder of plugins/ has its stanza of the build, which
# names each of its files, its file of cases, its section and row of docs/layers.md; and no
# case or section is of no layer.
. "${srcdir:-.}/tests/tap.sh"
cd "$srcdir" || exit 99

lacks() { # lacks FILE LINE WHAT: a line in the log unless the file has that line
    grep -qsxE -e "$2" "$1" || echo "$1: no $3" >>"$log"
}
check_files() { # check_files FOLDER: each is built or distributed
    for file in $(find "plugins/$1" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort); do
        grep -qsF "$file" plugins/"$1"/local.mk ||
            echo "plugins/$1/local.mk does not name $file" >>"$log"
    done
}
check_layer() { # check_layer FOLDER
    cases=tests/plugins/$1.c
    grep -qsF "/plugins/$1/local.mk" plugins/layers.mk ||
        echo "plugins/layers.mk does not list plugins/$1: run ./bootstrap" >>"$log"
    lacks "plugins/$1/local.mk" "plugin_LTLIBRARIES \\+= plugins/$1\\.la" 'module'
    lacks "plugins/$1/local.mk" "LAYER_CASES \\+= $cases" 'LAYER_CASES'
    check_files "$1"
    if [ ! -e "$cases" ]; then
        echo "$cases is missing" >>"$log"
        return
    fi
    name=$(sed -n 's/^LAYER_CASES(\([A-Za-z0-9]*\),.*/\1/p' "$cases")
    lacks "$cases" 'LAYER_CASES\([A-Za-z0-9]+, ORDINARY\(.*' 'LAYER_CASES()'
    lacks "plugins/$1/$1.c" ".*\\.name = \"$name\",.*" "layer '$name'"
    lacks docs/layers.md "## $name" "section '$name'"
    lacks docs/layers.md "\\| \\[$name\\]\\(#.*" "row of '$name' in the table at its top"
    echo "$name" >>"$scratch/sections"
    echo "$cases" >>"$scratch/cases"
}
without() { # without LIST FOUND WHAT: what was found and belongs to no layer
    sort -o "$scratch/$1" "$scratch/$1"
    sort "$2" | comm -13 "$scratch/$1" - | sed "s|\$| $3|" >"$log"
    [ ! -s "$log" ]
}

for folder in plugins/*/; do
    layer=$(basename "$folder")
    [ "$layer" = common ] && continue
    : >"$log"
    check_layer "$layer"
    [ ! -s "$log" ]
    result $? "$layer has its stanza, files, cases and section"
done

ls tests/plugins/*.c >"$scratch/found"
without cases "$scratch/found" 'is of no folder of plugins/'
result $? 'every file of cases is of a layer'
sed -n 's/^## //p' docs/layers.md >"$scratch/found"
without sections "$scratch/found" 'is a section of no layer'
result $? 'every section is of a layer'
finish
