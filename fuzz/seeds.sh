#!/bin/sh
# seeds.sh STRATA SOURCES CORPUS: what fuzz_engine starts from: small engines of every kind
# of decision, built by the command.
set -eu
strata=$1 nets=$2/fuzz/nets corpus=$3
mkdir -p "$corpus"
number=0
build() {
    number=$((number + 1))
    net=$1
    shift
    "$strata" build -q "$nets/$net.ini" -o "$corpus/seed$number.engine" "$@" >/dev/null
}
for net in branches shapes; do
    build $net --set build.formats=fp32:nchw
    build $net --set build.formats=fp32:nchw --set build.fusion=no
    build $net --set build.formats=fp32:nhwc,fp32:nchw
    build $net --set build.precision=fp16 --set build.formats=fp16:nhwc8,fp16:nchw
    build $net --set build.precision=fp16 --set build.formats=fp16:nc/2hw2
    build $net --set build.precision=any --set build.objective=reformats
done
build branches --set 'layer conv.impl=any' --set 'layer second.impl=c' --costs=measure
