#!/bin/sh
# TAP: the strata command as a user meets it: exit codes, results on stdout, messages
# that name the mistake and the remedy.
. "${srcdir:-.}/tests/tap.sh"
digits=$srcdir/examples/digits

image=$digits/images/3-011.pgm
expect 0 'strata [0-9]+\.[0-9]+' 'prints its version' $strata --version
expect 0 'Examples:' 'helps with examples' $strata --help
for c in run build quantise deploy inspect diff bench profile compare explain costs list describe new-layer check doctor completion; do
    expect 0 'Examples:' "helps with $c" $strata $c --help
    expect 2 'unknown option .--formt=csv.; did you mean .--format' "$c suggests options" \
        $strata $c --formt=csv
done
expect 2 'unknown command .rnu.; did you mean .run' 'suggests commands' $strata rnu
expect 2 "unknown command 'version'; did you mean '--version'" 'and options' $strata version
expect 2 'it is a file: a command goes before it, as in .strata run ' 'and that a file is none' \
    $strata $digits/digits.ini
expect 2 '--costs fast: neither auto, measure nor analytic, nor a cost file that is there' \
    'words of --costs are told' $strata run $digits/digits.ini $image --costs fast
expect 2 'costs: auto, measure, analytic, or a cost file' 'and of costs in a file' \
    $strata run $digits/digits.ini $image --set build.costs=fast
expect 2 'a network file is needed' 'run without a file says what is needed' $strata run
expect 0 '^prob +0 +1 +3 ' 'run ranks the answers' $strata run $digits/digits.ini $image
expect 0 '"index": 3, "value": 0\.99' 'run prints JSON' \
    $strata run $digits/digits.ini $image --top 1 -o json
expect 0 '^prob,0,1,3,0\.99' 'run prints CSV' \
    $strata run $digits/digits.ini $image --top 1 -o csv
expect 0 '^\| prob +\|' 'run prints Markdown' \
    $strata run $digits/digits.ini $image --top 1 -o md
expect 0 '^prob +0 +1 +9 ' 'run reads an IDX item' \
    $strata run $digits/digits.ini $digits/digits-test-images.idx --item 7 --top 1
expect 2 'no image 9999' 'run refuses an item that is not there' \
    $strata run $digits/digits.ini $digits/digits-test-images.idx --item 9999
$strata run $digits/digits.ini $image --output prob="$scratch/p.npy"
expect 0 'NUMPY' 'run saves an output as .npy' head -c 6 "$scratch/p.npy"
expect 2 'input .image. is not given; add --input image=FILE' \
    'run names an input that is missing' $strata run $digits/digits.ini
expect 0 '^      --format=FORMAT' 'a command whose -o is a file helps with --format' \
    $strata build --help
expect 2 "option '-o' needs a value" 'an option without its value is named' \
    $strata run $digits/digits.ini -o
expect 2 "unknown option '-x'" 'an unknown letter is named' \
    $strata run $digits/digits.ini -qxz
expect 2 "'nosuch=[^ ]*: write NAME=FILE, where NAME is one of: prob" \
    'an output that does not exist is refused' \
    $strata run $digits/digits.ini $image --output "nosuch=$scratch/p.npy"
expect 2 "'nosuch=.*NAME is one of: image" 'an input that does not exist is refused' \
    $strata run $digits/digits.ini "nosuch=$image"
expect 2 "input 'image' is given twice" 'an input given twice is refused' \
    $strata run $digits/digits.ini $image $image
expect 2 "no layer type 'Convolutoin'; did you mean 'Convolution'" \
    'list names a near layer' $strata list Convolutoin
expect 0 '^1 core::Softmax@1$' 'list shows the impls of one layer' sh -c \
    "$strata list Softmax -o csv | sed 1d | cut -d, -f1 | sort -u | uniq -c | xargs"
expect 2 "without --modules, but 'Softmax'" 'which have no part in --modules' \
    $strata list Softmax --modules
expect 2 "no argument is taken, but 'x'" 'doctor takes no argument' $strata doctor x
if [ -c /dev/full ]; then
    expect 2 'standard output cannot be written' 'a full disk is an error' \
        sh -c "$strata list >/dev/full"
fi
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 1\n[layer y]\n%s' \
    'type = ElementWise
inputs = x, x
op = pow
' >"$scratch/nan.ini"
printf '\000\000\200\277' >"$scratch/minus"
expect 0 '"value": -1,' 'JSON holds numbers' $strata run "$scratch/nan.ini" -o json \
    "$scratch/minus"
printf '\000\000\300\177' >"$scratch/nan"
expect 0 '^1$' 'several outputs make one JSON text' sh -c "$strata run \
    '$digits/digits.ini' '$image' --top 1 -o json --set network.outputs=prob,relu1 |
    grep -c '^\['"
expect 0 '"value": null' 'JSON has null for NaN' $strata run "$scratch/nan.ini" -o json \
    "$scratch/nan"
mkdir "$scratch/plugins"
cp "$builddir/plugins/.libs/identity.so" "$scratch/plugins"
chmod 775 "$scratch/plugins/identity.so"
expect 2 'every plugin file was rejected' 'list tells why it is empty' env \
    STRATA_PLUGIN_PATH= STRATA_PLUGIN_DIR="$scratch/plugins" $strata list
expect 2 'can be written by its group' 'describe does too, and knows that files were found' \
    env STRATA_PLUGIN_PATH= STRATA_PLUGIN_DIR="$scratch/plugins" $strata describe Identity
expect 0 '^prob' 'run makes random inputs' $strata run $digits/digits.ini --input random:3
expect 2 'random:x: the seed is no whole number' 'and refuses what is no seed' \
    $strata run $digits/digits.ini --input random:x
expect 2 "$scratch/none.npy: cannot be opened: No such file" 'an input that is not there' \
    $strata run $digits/digits.ini "$scratch/none.npy" --costs measure \
    --save-costs "$scratch/none.costs"
[ ! -e "$scratch/none.costs" ]
result $? 'is told before anything is measured'
# npy FILE SHAPE: 64 values.
npy() {
    printf '%b%-117s\n' '\0223NUMPY\001\000\0166\000' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': $2, }" >"$scratch/$1"
    head -c 256 /dev/zero >>"$scratch/$1"
}
for shape in '(8, 8)' '(1, 8, 8)' '(1, 1, 1, 8, 8)'; do
    npy a.npy "$shape"
    expect 0 '^prob' "run takes an array of $shape" $strata run $digits/digits.ini \
        "$scratch/a.npy"
done
npy a.npy '(64,)'
expect 2 "a.npy: shape \(64\), but input 'image' is \(1 x 1 x 8 x 8\); only ones in front" \
    'an array of another shape is refused' $strata run $digits/digits.ini "$scratch/a.npy"
for shape in '(8, 8, 1)' '(1, 8, 8, 1)'; do
    npy a.npy "$shape"
    expect 2 'left out or added; its channels are last: transpose it' \
        "one of $shape has its channels last" $strata run $digits/digits.ini "$scratch/a.npy"
done
npy a.npy '(8, 8, 1, 1)'
expect 2 "a.npy: shape \(8 x 8 x 1 x 1\)" 'and one of other strides' \
    $strata run $digits/digits.ini "$scratch/a.npy"
printf '%b%s\n' '\0223NUMPY\001\000\0102\000' \
    "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }" >"$scratch/big.npy"
expect 2 "descr '>f4' is big-endian" 'a file that is not read is no missing device' \
    $strata run $digits/digits.ini "$scratch/big.npy"
expect 2 "top '0': a number from 1 to 1000000000" 'a number has its bounds named' \
    $strata run $digits/digits.ini $image --top 0
expect 2 '359 bytes|elements' 'run compares raw sizes' \
    $strata run $digits/digits.ini $digits/README.md
expect 2 'nosuch.ini' 'a missing network is named' $strata run nosuch.ini
expect 3 "device 'cuda:9'" 'a missing device has its own exit code' \
    $strata run $digits/digits.ini $image --device cuda:9
expect 2 "digits.ini|--set.*kernal|kernal" 'an unknown key in --set is named' \
    $strata run $digits/digits.ini $image --set 'layer conv1.kernal=3x3'
expect 0 'REFORMAT +fp32:nchw +fp16:nhwc8.*FIXED-IO' 'explain says why a reformat stands' \
    $strata explain $digits/digits.ini --set build.precision=fp16 \
    --set build.formats=fp16:nhwc8
expect 0 'predicted [0-9.]+ us' 'explain sums up' $strata explain $digits/digits.ini
expect 0 'impl = any' 'explain shows refused impls' \
    $strata explain $digits/digits.ini --refused --set 'layer conv1.impl=any'
expect 0 'if output prob were bound as .*the plan gains [0-9.]+ us' \
    'explain tells what would remove a reformat' $strata explain $digits/digits.ini \
    --set build.precision=fp16 --reformats
expect 0 '^</svg>$' 'a drawing on standard output is nothing but the drawing' sh -c \
    "$strata explain $digits/digits.ini --svg - | tail -n 1"
expect 0 '^hidden \+ relu3|^relu3 .*fp32:' 'explain shows tensors' \
    $strata explain $digits/digits.ini --tensors
expect 0 '^c +convolution.so .* analytic +(chosen|a plan with it)' \
    'explain tells of each impl of a layer' \
    $strata explain $digits/digits.ini --impls conv1
expect 2 "no layer 'conv'; did you mean 'conv1'" 'explain names a near layer' \
    $strata explain $digits/digits.ini --impls conv
expect 0 '"proved": true' 'explain prints JSON' $strata explain $digits/digits.ini -o json
expect 0 '"kind":"totals"' 'explain prints JSON lines' \
    $strata explain $digits/digits.ini -o jsonl
expect 0 '^proved: lower bound = cost = [0-9]+ ' 'explain checks the certificate' \
    $strata explain $digits/digits.ini --verify
expect 0 '^\| what' 'explain compares a plan kept with the network, in Markdown' sh -c \
    "$strata explain $digits/digits.ini --save-plan $scratch/a.plan >$scratch/log &&
     ! $strata explain --diff $scratch/a.plan $digits/digits.ini -o md \
        --set build.formats=fp32:nchw --set 'layer conv1.impl=any' --set build.fusion=no"
expect 0 'make the same decisions' 'explain finds no difference where there is none' \
    $strata explain --diff "$scratch/a.plan" $digits/digits.ini
printf '{ "plan": ' >"$scratch/cut.plan"
expect 2 'cut.plan:1:' 'explain names where a plan is malformed' \
    $strata explain --diff "$scratch/cut.plan" "$scratch/a.plan"
expect 2 'diff compares two files' 'explain --diff needs two files' \
    $strata explain --diff "$scratch/a.plan"
expect 2 'layer .prob. .*writes prob .fp16:nchw' 'no plan at all names the constraints' \
    $strata explain $digits/digits.ini --set build.precision=fp16 \
    --set build.no_reformat=yes
expect 2 'no impl of core::Convolution@1 can run here' 'an impossible plan lists reasons' \
    $strata explain $digits/digits.ini --set build.formats=int8:nc/4hw4
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 1 x S\n[profile]\nS = 1..8
[layer y]\ntype = Pooling\nkernel = 3\n' >"$scratch/range.ini"
expect 2 '^strata: error: [^ ]*range.ini: layer .y. .*cannot have S = 1' \
    'a size that a layer cannot have is no missing device' \
    $strata explain "$scratch/range.ini"
# Engine files.
expect 0 'd.engine: [0-9]+ bytes, content hash [0-9a-f]{64}$' 'build writes an engine file' \
    $strata build $digits/digits.ini -o "$scratch/d.engine"
expect 0 'plan proved optimal' 'build sums up the plan' \
    $strata build $digits/digits.ini --output="$scratch/e.engine"
expect 0 'same' 'the same network is the same bytes' sh -c \
    "cmp '$scratch/d.engine' '$scratch/e.engine' && echo same"
expect 2 'output=FILE is needed' 'build needs an output' $strata build $digits/digits.ini
expect 2 'one network file is needed' 'build needs a network' $strata build -o x.engine
expect 2 'is an engine already' 'build refuses an engine' \
    $strata build "$scratch/d.engine" -o "$scratch/f.engine"
expect 2 'cannot write in folder' 'build names a folder that is not there' \
    $strata build $digits/digits.ini -o "$scratch/none/d.engine"
expect 0 '^prob +0 +1 +3 ' 'run takes an engine' $strata run "$scratch/d.engine" $image
mkdir "$scratch/alone"
cp "$scratch/d.engine" $image "$scratch/alone"
expect 0 '^prob,0,1,3,0\.99' 'an engine needs no other file' sh -c \
    "strata=\$(realpath $strata) && cd '$scratch/alone' && \$strata run d.engine \
        3-011.pgm --top 1 -o csv"
expect 2 '--set build.precision=fp16 cannot change an engine that is built' \
    'an engine takes no --set of its build' \
    $strata run "$scratch/d.engine" $image --set build.precision=fp16
expect 0 '^prob +0 +1 +3 ' 'an engine takes a number of threads and how they wait' \
    $strata run "$scratch/d.engine" $image --set runtime.threads=3 --set runtime.wait=sleep
expect 2 "--set runtime.threads=x: 'x' is not a number of threads" \
    'a number of threads is one' $strata run "$scratch/d.engine" --set runtime.threads=x
expect 2 "runtime.wait=nap: 'nap' is not one of: spin, yield, sleep" \
    'ways to wait are three' $strata run "$scratch/d.engine" --set runtime.wait=nap
many=$(($(nproc) * 4))
expect 0 'oversubscribed: threads waited for one of the [0-9]+ processors' \
    'bench says that there are too few processors' $strata bench "$scratch/d.engine" \
    --set runtime.threads=1 --streams $many --duration 300ms
expect 2 '--costs cannot change an engine' 'an engine takes no --costs' \
    $strata run "$scratch/d.engine" $image --costs=analytic
expect 3 "device 'cuda:9'" 'an engine on a device that is missing' \
    $strata run "$scratch/d.engine" $image --device cuda:9
expect 2 'conv1. needs plugin .*is not here' 'an engine names the plugin it lacks' env \
    STRATA_PLUGIN_PATH= STRATA_PLUGIN_DIR="$scratch/plugins" $strata run \
    "$scratch/d.engine" $image
{ printf 'damaged!' && tail -c +9 "$scratch/d.engine"; } >"$scratch/damaged.engine"
expect 2 'damaged.engine: the first 8 bytes are damaged; build the engine again' \
    'a damaged beginning is told' $strata run "$scratch/damaged.engine" $image
head -c 5000 "$scratch/d.engine" >"$scratch/cut.engine"
expect 2 'cut.engine: 5000 bytes; the header says [0-9]+; build the engine again' \
    'a cut engine is refused' $strata run "$scratch/cut.engine" $image
expect 0 'predicted [0-9.]+ us' 'explain takes an engine' \
    $strata explain "$scratch/d.engine"
expect 0 '"proved": true' 'explain prints the report of an engine' \
    $strata explain "$scratch/d.engine" -o json
expect 0 'digraph' 'explain draws an engine' $strata explain "$scratch/d.engine" --dot -
expect 2 '--refused needs what was not chosen' 'an engine has no refused impls' \
    $strata explain "$scratch/d.engine" --refused
expect 2 '--verify needs what was not chosen' 'an engine has no certificate' \
    $strata explain "$scratch/d.engine" --verify
expect 0 'network digits, engine format 1.0' 'inspect shows what the engine is' \
    $strata inspect "$scratch/d.engine"
expect 0 '^weights +[0-9]+ +[0-9]+' 'inspect shows sections' $strata inspect "$scratch/d.engine"
expect 0 '^convolution.so +core +1\.' 'inspect shows plugins' \
    $strata inspect "$scratch/d.engine"
expect 0 '^conv1.*Convolution' 'inspect shows layers' \
    $strata inspect "$scratch/d.engine" --layers
expect 0 '^relu1,yes,conv1,' 'inspect shows fusions' \
    $strata inspect "$scratch/d.engine" --fusions -o csv
expect 0 '"builder": "' 'inspect prints JSON' $strata inspect "$scratch/d.engine" -o json
expect 0 '"kind": *"plugins"' 'inspect prints JSON lines' \
    $strata inspect "$scratch/d.engine" -o jsonl
expect 0 'v[0-9]+ -> v[0-9]+ .label="fp32' 'inspect draws without plugins' env \
    STRATA_PLUGIN_PATH= STRATA_PLUGIN_DIR=/nonexistent $strata inspect \
    "$scratch/d.engine" --dot -
expect 0 '^type = core::Convolution@1' 'inspect prints a section' \
    $strata inspect "$scratch/d.engine" --section network
expect 2 "no section 'x'; there are: device plugins plan" 'inspect names the sections' \
    $strata inspect "$scratch/d.engine" --section=x
# IR 8, opset 17, one Op of x and the weight w = {1, 2}, x being "batch" x 3, y a sequence.
{
    printf '\010\010\022\005maker\032\0012B\002\020\021:H\022\001g\012\015\012\001x\012\001w\022\001y"\002Op*\021B\001w\010\002\020\001\045\000\000'
    printf '\200?\045\000\000\000@Z\030\012\001x\022\023\012\021\010\001\022\015\012\007\022\005batch\012\002\010\003b\007\012\001y\022\002"\000'
} >"$scratch/m.onnx"
expect 0 'ONNX graph g, IR 8, written by maker 2' 'inspect shows who wrote a model' \
    $strata inspect "$scratch/m.onnx"
expect 0 '^input +x +float +batch x 3' 'inspect shows inputs of a model' \
    $strata inspect "$scratch/m.onnx"
expect 0 '^Op,ai.onnx,1' 'inspect counts ops of a model' $strata inspect "$scratch/m.onnx" -o csv
expect 0 '"weight_bytes": 8' 'inspect prints a model as JSON' \
    $strata inspect "$scratch/m.onnx" -o json
expect 2 'the options, -o alone' 'inspect refuses options for engines with a model' \
    $strata inspect "$scratch/m.onnx" --layers
printf '\072\005' >"$scratch/cut.onnx"
expect 2 'cut.onnx: byte 0x1: length 5 runs past' 'inspect says where a model is damaged' \
    $strata inspect "$scratch/cut.onnx"
expect 2 'not an engine file; `strata build` writes one; of a network' 'inspect refuses what is no engine' \
    $strata inspect $digits/digits.ini
expect 0 '^precision = fp16' 'inspect prints a network' \
    $strata inspect $digits/digits.ini --print --set build.precision=fp16
expect 0 '^type = Convolution' 'inspect prints layers' $strata inspect $digits/digits.ini --print
expect 2 'stand alone' 'inspect prints alone' $strata inspect $digits/digits.ini --print --layers
expect 2 'is an engine' 'inspect prints no engine' $strata inspect "$scratch/d.engine" --print
mkdir "$scratch/own"
cp $digits/digits.safetensors "$scratch/own"
{ sed '/^\[layer/,$d' $digits/digits.ini && printf '[include]\nfile = layers.ini\n'; } |
    sed 's/^outputs = .*/&\nlabels = labels.txt/' >"$scratch/own/digits.ini"
sed -n '/^\[layer/,$p' $digits/digits.ini >"$scratch/own/layers.ini"
seq 0 9 >"$scratch/own/labels.txt"
cp "$scratch/d.engine" "$scratch/own"
cp -r "$scratch/own" "$scratch/before"
# keeps FILE COMMAND [OPTION...]: the last option gets the file's path behind it.
keeps() {
    file=$scratch/own/$1 command=$2 net=digits.ini
    [ "$1" != d.engine ] || net=d.engine
    shift 2
    expect 2 "own/${file##*/}: would be replaced, but the network is made of it; name" \
        "$command $* keeps ${file##*/}" $strata $command "$scratch/own/$net" "$@$file"
}
keeps digits.ini build --output=
keeps layers.ini build -o
keeps digits.safetensors explain --save-plan=
keeps digits.ini explain --svg=
keeps d.engine explain --svg=
keeps labels.txt run --input=random:1 --output=prob=
keeps layers.ini bench --times=
keeps digits.safetensors bench --exportProfile=
keeps d.engine bench --saveEngine=
keeps digits.ini profile --html=
keeps labels.txt profile --trace=
keeps layers.ini profile --exportProfile=
cp $digits/digits.safetensors "$scratch/own/prob.b.npy"
expect 2 'own/prob.b.npy: would be replaced' 'compare --dump keeps weights' $strata \
    compare "$scratch/own/digits.ini" --set 'weights w.file=prob.b.npy' --impls any,c \
    --dump prob --folder "$scratch/own"
expect 0 '^same$' 'and all of them stay' sh -c \
    "diff -r '$scratch/before' '$scratch/own' -x 'prob.?.npy' && echo same"
for command in "build $digits/digits.ini" 'describe Softmax'; do
    expect 2 "-o 'json': a file is needed here, not a format; write ./json" \
        "${command%% *} takes no format for a file" $strata $command -o json
done
expect 2 'one engine file or ONNX model is needed' 'inspect needs a file' $strata inspect
$strata inspect "$scratch/d.engine" --extract="$scratch/files"
expect 2 'files/device: exists; name a new folder' 'inspect extracts over no file' \
    $strata inspect "$scratch/d.engine" --extract="$scratch/files"
expect 0 '^prob,0,1,3,0\.99' 'what inspect extracts is a network' \
    $strata run "$scratch/files/network.ini" $image --top 1 -o csv
expect 0 'same' 'which builds the same engine, but for its report' sh -c "
    $strata build '$scratch/files/network.ini' -o '$scratch/g.engine' >'$scratch/log' &&
    for s in network plan plugins device weights; do
        $strata inspect '$scratch/d.engine' --section=\$s >'$scratch/one' &&
        $strata inspect '$scratch/g.engine' --section=\$s >'$scratch/two' &&
        cmp '$scratch/one' '$scratch/two' || exit 1
    done
    echo same"
$strata build $digits/digits.ini -o "$scratch/h.engine" --set build.fusion=no \
    --set build.precision=fp16 >"$scratch/log"
expect 0 'REFORMAT|FIXED-IO' 'inspect shows reformats' \
    $strata inspect "$scratch/h.engine" --reformats
expect 0 'REFORMAT ·' 'inspect draws reformats' $strata inspect "$scratch/h.engine" --dot -
expect 1 '^conv1 .* is no longer offered' 'diff tells which decision moved' \
    $strata diff "$scratch/d.engine" "$scratch/h.engine"
expect 0 'make the same decisions' 'diff compares an engine with its network' \
    $strata diff "$scratch/d.engine" $digits/digits.ini
expect 0 'make the same decisions' 'diff compares an engine with a saved plan' \
    $strata diff "$scratch/a.plan" "$scratch/d.engine"
expect 2 'two files are compared' 'diff needs two files' $strata diff "$scratch/d.engine"
costs_file() { # NAME DEVICE LINE...
    name=$1 device=$2
    shift 2
    printf 'strata-costs 1\ndevice %s\n' "$device" >"$scratch/$name"
    printf '%s\n' "$@" >>"$scratch/$name"
}
costs_file a.costs host '100 5 10 run a' '200 5 20 run b' '300 90 10 run d'
costs_file b.costs host '150 5 20 run a' '150 5 10 run b' '400 5 10 run c' '290 90 10 run d'
costs_file c.costs other '150 5 20 run a'
expect 0 '4 costs of 2 files in .*; 2 disagree' 'costs merges and counts conflicts' \
    $strata costs merge "$scratch/a.costs" "$scratch/b.costs" --output="$scratch/m.costs"
expect 0 '100,5,10,150,5,20,\+50\.0,its,run a' 'costs lists which of two is kept' \
    $strata costs merge "$scratch/a.costs" "$scratch/b.costs" \
    -o "$scratch/m.costs" --format=csv
expect 0 '"percent": 50.0,' 'costs lists it as JSON, which has no sign +' \
    $strata costs merge "$scratch/a.costs" "$scratch/b.costs" \
    -o "$scratch/m.costs" --format=json
expect 0 '^150 5 20 run a 200 5 20 run b 400 5 10 run c 290 90 10 run d $' \
    'merged costs are the better known' \
    sh -c "sed 1,3d '$scratch/m.costs' | tr '\n' ' '"
expect 2 'c.costs: costs of device .other. cannot join those of .host.' \
    'costs of another device do not merge' \
    $strata costs merge "$scratch/a.costs" "$scratch/c.costs" --output="$scratch/n.costs"
expect 2 'two or more cost files' 'costs merge needs two files' \
    $strata costs merge "$scratch/a.costs" --output="$scratch/n.costs"
expect 2 "-o 'csv': a file is needed here, not a format" 'the -o of costs is its file' \
    $strata costs merge "$scratch/a.costs" "$scratch/b.costs" -o csv
expect 2 'output=FILE is needed' 'costs merge needs an output' \
    $strata costs merge "$scratch/a.costs" "$scratch/b.costs"
expect 0 'core::Convolution@1' 'list shows layers' $strata list
expect 0 'core +1\.0\.0 +1\.[0-9]+' 'list shows modules' $strata list --modules
expect 0 'no file was rejected' 'list shows rejections' $strata list --rejected
expect 2 "did you mean|Convolution" 'describe suggests layers' $strata describe Convolutoin
expect 0 'modules +[1-9][0-9]+ found' 'doctor counts modules' $strata doctor
expect 0 'load +([0-9.]+ threads on|not told by the system;) [0-9]+ processors' \
    'doctor says how busy the machine is' $strata doctor
expect 0 'waiting +by OMP_WAIT_POLICY=passive in the environment' \
    'doctor says who decides how threads wait' \
    env OMP_WAIT_POLICY=passive $strata doctor
for c in doctor list "describe Softmax" "run $digits/digits.ini"; do
    expect 2 'no plugin was found, .* install the package, or set STRATA_PLUGIN_PATH to' \
        "${c%% *} says what to do without plugins" \
        env STRATA_PLUGIN_DIR=/nonexistent STRATA_PLUGIN_PATH= $strata $c
done
[ "$(env STRATA_PLUGIN_DIR=/nonexistent STRATA_PLUGIN_PATH= $strata run $digits/digits.ini 2>&1 |
    grep -c 'searched:\|no layer type')" -eq 6 ]
result $? 'and says it once for the five types that are missing'
expect 2 '\.: a relative folder in STRATA_PLUGIN_DIR is not searched; write an absolute' \
    'STRATA_PLUGIN_DIR is refused where it is relative' sh -c \
    "cd '$builddir/plugins/.libs' && STRATA_PLUGIN_DIR=. STRATA_PLUGIN_PATH= \
        '$builddir/strata' run '$digits/digits.ini' '$image'"
expect 0 'complete -o default -F _strata strata' 'completion prints a script' \
    $strata completion bash

expect 2 "shape '3xy': DIMS is needed" 'check refuses what is no shape' \
    $strata check "$builddir/plugins/.libs/softmax.so" --shape 3xy
expect 2 "softmax.so has no impl 'nosuch'; it has c of core::Softmax@1$" \
    'check names the impls that there are' \
    $strata check "$builddir/plugins/.libs/softmax.so" --impl nosuch --test memory
finish
