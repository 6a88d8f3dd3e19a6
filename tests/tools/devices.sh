#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: strata bench over several devices: the host, more than once.
. "${srcdir:-.}/tests/tap.sh"
digits=$srcdir/examples/digits/digits.ini
quick='--warmup=0 --duration=1ms --iterations=8 --set=runtime.threads=1'
expect 0 '2 x host' 'two devices run beside each other' \
    $strata bench "$digits" --device=host,host $quick
expect 0 '^.*"streams": *6' 'each has the streams that one would have' \
    $strata bench "$digits" --device=host,host,host --streams=2 $quick -o json
$strata build "$digits" -o "$scratch/d.engine" >"$log" 2>&1
expect 0 '2 x host' 'an engine file is loaded on each' \
    $strata bench "$scratch/d.engine" --device=host,host $quick
expect 2 'a name is empty' 'an empty name is refused' \
    $strata bench "$digits" --device=host,, $quick
expect 3 "device 'gpu" 'a device that is not there is named' \
    $strata bench "$digits" --device=host,gpu:1 $quick
if [ -n "${STRATA_REQUIRE_CUDA:-}" ] || [ -e /dev/nvidiactl ]; then
    expect 0 'NVIDIA' 'cuda:all' $strata bench "$digits" --device=cuda:all $quick
else
    expect 3 'cuda:0' 'cuda:all without a GPU says what is missing' \
        $strata bench "$digits" --device=cuda:all $quick
fi
finish
