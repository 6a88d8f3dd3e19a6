#!/bin/sh
# TAP: networks that are written by hand, and imported from an ONNX model of the same
# layers and weights, cost the same and give the same outputs.
#   STRATA_MODELS=DIR   raw weights, as scripts/convert_models.py reads them
. "${srcdir:-.}/tests/tap.sh"
export STRATA_COSTS=analytic
models=${STRATA_MODELS:-$srcdir/../shared/models} python=${PYTHON:-python3}
nets='squeezenet_v1.1 resnet20_cifar10 yolo-fastest-1.1'
if ! [ -d "$models/squeezenet_v1.1" ]; then
    skip 'by hand and imported' "$models is absent"
    finish
elif ! "$python" -c 'import numpy, onnx' 2>"$log"; then
    skip 'by hand and imported' "$python has no numpy or no onnx"
    finish
fi

cd "$scratch" || exit 99
cp "$srcdir"/examples/models/*.ini . &&
    "$python" "$srcdir/scripts/convert_models.py" "$models" . $nets >"$log" 2>&1 &&
    "$python" "$srcdir/scripts/models_to_onnx.py" . $nets >>"$log" 2>&1
result $? 'ONNX models of the networks are written'

outputs_of() { # outputs_of NET.ini: output, output, ...
    sed -n 's/^outputs = //p' "$1" | tr -d ' ' | tr , ' '
}
run() { # run NET.ini STEM: its outputs for one random input, in STEM.OUTPUT.npy
    "$strata" run "$1" --input random:7 \
        $(for o in $(outputs_of "$1"); do echo "--output=$o=$2.$o.npy"; done) >>"$log" 2>&1
}
elements() { # elements FILE.npy: without the header
    tail -c +129 "$1"
}
for net in $nets; do
    "$strata" import "$net.onnx" -o "$net.imported.ini" >"$log" 2>&1
    result $? "$net is imported"
    "$strata" diff "$net.ini" "$net.imported.ini" >"$log" 2>&1
    sed -n 's/^predicted \(.*\) us, then \(.*\) us$/\1 \2/p' "$log" |
        { read -r hand imported && [ "$hand" = "$imported" ]; }
    result $? "$net costs what the one by hand costs"
    run "$net.ini" hand && run "$net.imported.ini" imported
    same=$?
    for output in $(outputs_of "$net.ini"); do # but for their ranks
        elements "hand.$output.npy" >hand.raw && elements "imported.$output.npy" |
            cmp - hand.raw >>"$log" 2>&1 || same=1
    done
    result $same "$net gives the same outputs"
done
finish
