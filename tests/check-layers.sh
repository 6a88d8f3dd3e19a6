#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: a built-in layer is whole. Each folder of plugins/ has its stanza of the build, its
# file of cases and its section of docs/layers.md, and no case or section is of no layer.
. "${srcdir:-.}/tests/tap.sh"
cd "$srcdir" || exit 99

lacks() { # lacks FILE LINE WHAT: a line in the log unless the file has that line
    grep -qsxE -e "$2" "$1" || echo "$1: no $3" >>"$log"
}
check_layer() { # check_layer FOLDER: prints the layer's name
    cases=tests/plugins/$1.c
    name=$(sed -n 's/^LAYER_CASES(\([A-Za-z0-9]*\),.*/\1/p' "$cases" 2>>"$log")
    lacks "plugins/$1/local.mk" "plugin_LTLIBRARIES \\+= plugins/$1\\.la" 'module'
    lacks "plugins/$1/local.mk" "LAYER_CASES \\+= $cases" 'LAYER_CASES'
    lacks "$cases" 'LAYER_CASES\([A-Za-z0-9]+, ORDINARY\(.*' 'LAYER_CASES()'
    lacks "plugins/$1/$1.c" ".*\\.name = \"$name\",.*" "layer '$name'"
    lacks docs/layers.md "## $name" "section '$name'"
    echo "$name"
}

for folder in plugins/*/; do
    layer=$(basename "$folder")
    [ "$layer" = common ] && continue
    : >"$log"
    check_layer "$layer" >>"$scratch/sections"
    echo "$cases" >>"$scratch/cases"
    [ ! -s "$log" ]
    result $? "$layer has its stanza, cases and section"
done

for list in cases sections; do
    sort -o "$scratch/$list" "$scratch/$list"
done
ls tests/plugins/*.c | sort | diff "$scratch/cases" - >"$log"
result $? 'every file of cases has a folder'
sed -n 's/^## //p' docs/layers.md | sort | diff "$scratch/sections" - >"$log"
result $? 'every section has a folder'
finish
