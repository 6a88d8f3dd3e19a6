#!/bin/sh
# TAP: an application in a locale with a decimal comma gets the same engines, bit for bit,
# and the same keys of costs.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99

cat >save.c <<'END'
#include <strata/strata.h>

#include <locale.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine, *again;
    strata_error err;
    char comma[8];
    if (argc != 4 || !setlocale(LC_ALL, argv[3]))
        return 77;
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    if (argv[3][0] != 'C' && comma[1] != ',')
        return 77;
    if (strata_create(&handle, "host", &err) ||
        strata_registry_create(&registry, NULL, &err) ||
        strata_network_load(&network, argv[1], registry, NULL, &err) ||
        strata_engine_build(&engine, handle, network, &err) ||
        strata_engine_save(engine, argv[2], &err) ||
        strata_engine_load(&again, handle, registry, argv[2], &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    strata_engine_destroy(again);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(handle);
    return 0;
}
END
cat >net.ini <<'END'
[network]
format = 1
outputs = y
[input x]
shape = 1 x 3 x 8 x 8
mean = 0.5, 0.25, 0.125
[build]
costs = net.costs
costs_miss = analytic
[layer big]
type = Resize
scale = 1.5
[layer y]
type = Activation
kind = leaky_relu
alpha = 0.125
END
# Costs by which reformats pay, so that their reasons have figures in them.
$strata explain net.ini --set build.costs=measure --save-costs all.costs --measure-all >"$log" 2>&1
awk '/^[0-9]/ { $1 = /in=fp32:nhwc/ ? 598 : / reformat / ? 943 : 3431 } 1' all.costs >net.costs
# shellcheck disable=SC2046,SC2086
$CC ${SANITIZER_CFLAGS:-} save.c -o save $(
    PKG_CONFIG_PATH=$builddir/pkgconfig pkg-config --cflags --libs strata) >>"$log" 2>&1 &&
    ./save net.ini plain.engine C >>"$log" 2>&1
grep -aq 'gains [0-9]*\.[0-9] us' plain.engine 2>>"$log" && ./save net.ini plain.engine C >>"$log" 2>&1
result $? 'an engine is saved and loaded in the C locale'

claim='and is the same with a decimal comma'
if localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 >/dev/null 2>&1; then
    LOCPATH=$scratch ./save net.ini comma.engine de_DE.UTF-8 >"$log" 2>&1 &&
        cmp plain.engine comma.engine >>"$log" 2>&1
    code=$?
else
    code=77
fi
if [ $code -eq 77 ]; then
    skip "$claim" 'there is no locale with a decimal comma'
else
    result $code "$claim"
fi
finish
