#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: models of a Triton repository from engine files, and keys of engines.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99
cp "$srcdir/examples/digits/digits.ini" "$srcdir/examples/digits/digits.safetensors" .
printf '%s\n' zero one two three four five six seven eight nine >names.txt
batches='--define=batch=N --set=profile.N=1,4,32'
$strata build digits.ini $batches --set network.labels=names.txt -o net.engine >"$log" 2>&1
result $? 'an engine is built'

expect 0 '^digits/1/model.engine +host +[0-9]+ +run once$' 'it becomes version 1' \
    $strata deploy net.engine -o models
cmp net.engine models/digits/1/model.engine >"$log" 2>&1
result $? 'the file is the engine'
cat >wanted <<'EOF'
# Written by strata deploy. What is not said is completed from the engine.
backend: "strata"
max_batch_size: 32
dynamic_batching { preferred_batch_size: [ 1, 4, 32 ] }
output [
  { name: "prob" data_type: TYPE_FP32 dims: [ 10, 1, 1 ] label_filename: "labels.txt" }
]
instance_group [ { kind: KIND_CPU count: 1 } ]
default_model_filename: "model.engine"
EOF
diff wanted models/digits/config.pbtxt >"$log" 2>&1
result $? 'the config has batches, device, file and labels'
cmp names.txt models/digits/labels.txt >"$log" 2>&1
result $? 'the labels are the network'"'"'s'

echo '# mine' >>models/digits/config.pbtxt
expect 0 'config.pbtxt was there and is left' 'the next is version 2, and keeps the config' \
    $strata deploy net.engine -o models
! grep -q 'would have' "$log" && grep -q '^# mine' models/digits/config.pbtxt &&
    [ -e models/digits/2/model.engine ]
result $? 'an edited config is left'
expect 0 '^digits/3/' '--force' $strata deploy net.engine -o models --force
! grep -q '^# mine' models/digits/config.pbtxt
result $? 'writes it anew'
expect 2 'models/digits/2 is there already; versions are never changed' \
    'a version is never changed' $strata deploy net.engine -o models --version=2
expect 2 'are for the same kind of device' 'two engines for one device are refused' \
    $strata deploy net.engine net.engine -o models
expect 2 "'../x' is no name of a model" 'a name that is a path is refused' \
    $strata deploy net.engine -o models --name=../x
head -c 90000 net.engine >cut.engine
expect 2 'cut.engine' 'a damaged engine is refused by name' \
    $strata deploy cut.engine -o others
[ ! -e others ] && [ -z "$(find models -name '.*')" ]
result $? 'and nothing is written'
expect 2 'has no effect here' 'what it can only ignore is refused' \
    $strata deploy net.engine -o models --costs=analytic
expect 2 '^Usage: strata deploy' 'a repository is needed' $strata deploy net.engine

$strata build digits.ini --set 'input image.shape=1 x 1 x 8 x 8' -o one.engine >"$log" 2>&1
expect 0 '^single/7/' 'a name and a version' \
    $strata deploy one.engine -o models --name=single --version=7
grep -qx 'max_batch_size: 1' models/single/config.pbtxt &&
    ! grep -q 'dynamic_batching\|output' models/single/config.pbtxt
result $? 'one row is not batched'
expect 0 '^max_batch_size: 1$' 'what an older config lacks of the new engine is shown' \
    $strata deploy one.engine -o models --name=digits

# ---- keys ---------------------------------------------------------------------------------
key() { $strata build digits.ini --key --costs=analytic "$@" 2>"$log"; }
first=$(key)
echo "$first" | grep -qE '^[0-9a-f]{64}$' && [ "$(key)" = "$first" ]
result $? 'a key is 64 digits, the same each time'
cp digits.safetensors other.safetensors
printf '\001' | dd of=other.safetensors bs=1 seek=150000 conv=notrunc 2>/dev/null
{
    key
    key --define=batch=2
    key --set build.fusion=no
    key --set 'weights w.file=other.safetensors'
    $strata build digits.ini --key --costs=measure
    $strata build digits.ini --key --costs=analytic --set build.math=tensor_op
    $strata build digits.ini --key --costs=analytic --set build.math=tf32
} >keys 2>"$log"
[ "$(sort -u keys | wc -l)" -eq 7 ]
result $? 'shapes, options, weights, costs and math are in it'
[ "$(STRATA_COSTS=analytic $strata build digits.ini --key)" = "$first" ] &&
    [ "$(STRATA_COSTS=measure $strata build digits.ini --key)" = "$(sed -n 5p keys)" ]
result $? 'also where the environment says whence costs come'
mkdir moved && mv digits.ini digits.safetensors moved && cd moved && [ "$(key)" = "$first" ]
result $? 'where the files lie is not'
expect 2 '--key writes no file' 'a key and a file are refused together' \
    $strata build digits.ini --key -o x.engine
finish
