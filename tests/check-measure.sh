#!/bin/sh
# TAP: bench, profile and compare as a user meets them: every option, every output form,
# messages that name the mistake.
. "${srcdir:-.}/tests/tap.sh"
digits=$srcdir/examples/digits/digits.ini

# bench PATTERN CLAIM OPTION...: a short measurement of the digits.
bench() {
    pattern=$1 claim="bench $2"
    shift 2
    expect 0 "$pattern" "$claim" $strata bench "$digits" --set runtime.threads=1 \
        --warmup=0ms --duration=0s --iterations=12 "$@"
}

bench '^quote: median latency, [0-9.]+ ms: one run' 'says which number to quote'
bench '^latency +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' \
    'shows min, mean, median, percentiles and max'
bench '^throughput: [0-9.]+ inferences a second \([0-9]+ in' 'shows throughput'
bench '^\| latency \| +[0-9.]+ \|' 'prints Markdown' -o md
bench '"latency": \{' 'prints JSON' -o json
bench '^\{.*"compute":\{"min_ms":' 'prints JSON lines' -o jsonl
bench '^network,device,.*latency_median_ms' 'prints CSV' -o csv
bench '"runs": 12,' 'makes the runs asked for' -o json
bench '"h2d": \{' 'times copies where they are asked for' --transfers -o json
bench '"transfers": false' 'leaves them out otherwise' --transfers --no-transfers -o json
bench 'caches cold' 'empties the cache' --cold-cache
bench 'caches warm' 'or does not' --cold-cache --warm-cache
bench '"in_flight": 3' 'has several runs under way' --in-flight 3 -o json
for t in 1 2; do
    expect 0 "^waiting: $((t - 1))\$" "bench says who decides how $t threads wait" sh -c \
        "echo waiting: \$(OMP_WAIT_POLICY=passive $strata bench '$digits' -o md \
            --set runtime.threads=$t --warmup=0ms --duration=0s --iterations=12 |
            grep -c 'OMP_WAIT_POLICY=passive is in the environment')"
done
bench '"contexts": 4' 'deals contexts to streams' --streams 2 --contexts 4 -o json
bench '"threads": 1,' 'drives streams by fewer threads' --streams 2 --threads=1 -o json
bench '"threads": 2,' 'drives each stream by a thread' --streams 2 --threads -o json
bench 'latency is that under load' 'warns of latency under load' --streams 2
bench 'p50 +p99.9 +max' 'takes percentiles' --percentiles 50,99.9
bench 'stream 0, runs 6 to 11, mean ms: latency' 'prints averages' --averages 6
bench '^quote' 'polls' --spin
bench 'throughput counts the idle time' 'waits between runs' --idle=1us
bench 'input 5 x 1 x 8 x 8' 'takes a batch' --batch 5
bench 'copies and runs of one stream follow each other: --streams=2' \
    'says that one stream overlaps nothing' --transfers --in-flight 2
# Of each run the copies in, the network and the copies out, by its stream: those of one
# stream follow each other, and copies of one go beside the network of the other. Where
# others have the processors the streams may take turns: then it is tried again.
overlaps() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        # shellcheck disable=SC2086
        $strata bench "$digits" --set runtime.threads=1 --duration 0 --iterations 4000 \
            --streams 2 --transfers --times "$scratch/t.json" >"$scratch/log" || return
        said=$(awk -f "$srcdir/tests/tools/overlap.awk" "$scratch/t.json")
        [ "$said" = 'in order, apart' ] || break
    done
    echo "$said"
}
expect 0 '^in order, beside each other$' 'bench overlaps copies of streams' overlaps
bench '^\| +5 \| fp16 +\| +2 \|' 'makes a case of each combination' --batch 1,5 \
    --precision fp32,fp16 --streams 1,2 -o md
bench 'input 3 x 1 x 8 x 8' 'takes shapes' --shapes=image:3x1x8x8
bench '^quote' 'takes inputs' --input image=random:7
bench 'few runs' 'warns where percentiles mean little'
expect 0 '"startComputeMs"' 'bench writes the times of every run' sh -c "$strata bench \
    '$digits' --duration 0 --iterations 3 --times '$scratch/t.json' >'$scratch/log' &&
    cat '$scratch/t.json'"
expect 0 '^ *12$' 'bench writes one entry a run' sh -c "$strata bench '$digits' \
    --duration 0 --iterations 12 --exportTimes='$scratch/t.json' >'$scratch/log' &&
    grep -c latencyMs '$scratch/t.json'"
bench '"precision": "fp16"' 'takes the spellings of trtexec' --warmUp=1 --duration=0 \
    --infStreams=1 --noDataTransfers --useSpinWait --noSpinWait --noCudaGraph \
    --useCudaGraph --fp16 --percentile=90,99 --avgRuns=4 --idleTime=0 \
    --separateProfileRun --exposeDMA --stronglyTyped --noTF32 -o json
bench 'copies included' 'takes more of them' --includeDataTransfers --best \
    --loadInputs=image:$srcdir/examples/digits/images/3-011.pgm
expect 0 '^quote' 'bench saves an engine, and takes one by --loadEngine' sh -c "$strata \
    bench '$digits' --saveEngine='$scratch/s.engine' --skipInference \
    --memPoolSize=workspace:64M && $strata bench --loadEngine='$scratch/s.engine' \
    --iterations 3 --duration 0"
expect 2 "memPoolSize 'tacticDram:5': workspace:SIZE" 'bench knows one pool' \
    $strata bench "$digits" --memPoolSize=tacticDram:5
expect 0 '^digits' 'bench takes the network by --loadEngine' $strata bench \
    --loadEngine="$digits" --iterations 3 --duration 0
printf '[bench]\nwarmup = 1ms\nduration = 0s\niterations = 4\nstreams = 2\ncontexts = 3
threads = 1\nin_flight = 2\ntransfers = yes\npercentiles = 50, 75\n' >"$scratch/bench.ini"
sed 's/^file = .*/random = 1/; /^labels/d' "$digits" >"$scratch/net.ini"
cat "$scratch/bench.ini" >>"$scratch/net.ini"
expect 0 '"streams":2,"contexts":3,"threads":1,"in_flight":2,"transfers":true.*p75_ms' \
    'bench begins with the [bench] section' $strata bench "$scratch/net.ini" -o jsonl
expect 0 '"streams":1' 'options of bench win' $strata bench "$scratch/net.ini" -o jsonl \
    --streams 1
expect 0 '"turns":true' 'turns are of [bench], too' $strata bench "$scratch/net.ini" \
    -o jsonl --set bench.turns=yes
expect 0 '"turns":false' 'and an option wins here, too' $strata bench \
    "$scratch/net.ini" -o jsonl --set bench.turns=yes --no-turns
expect 2 "101 is not a percentile" '[bench] is checked' $strata bench "$digits" \
    --set bench.percentiles=90,101
expect 2 "unknown key 'stream'" '[bench] knows its keys' $strata bench "$digits" \
    --set bench.stream=1
expect 2 'a network file is needed' 'bench without a file says what is needed' \
    $strata bench
expect 2 'one network file is needed' 'bench takes one file' $strata bench a b
expect 2 "streams '0': a number from 1" 'bench refuses no streams' $strata bench \
    "$digits" --streams 0
for list in 1,,2 ,1 1, ''; do
    expect 2 "batch '$list': a list of 1 to 16 values" "bench refuses the batches '$list'" \
        $strata bench "$digits" --batch "$list"
done
expect 2 "duration '3 weeks': a time" 'bench refuses what is no time' $strata bench \
    "$digits" --duration '3 weeks'
expect 2 "percentiles '0'" 'bench refuses what is no percentile' $strata bench \
    "$digits" --percentiles 0
expect 2 "precision|fp12" 'bench refuses a precision that is none' $strata bench \
    "$digits" --precision fp12
expect 2 "shapes 'image'" 'bench refuses a shape without dims' $strata bench "$digits" \
    --shapes=image
expect 2 'nosuch' 'bench names an input that is not there' $strata bench "$digits" \
    --input nosuch=random:1
expect 3 "cuda:9" 'bench numbers devices as trtexec' $strata bench "$digits" --device=9
bench '^total +[0-9.]+ +100.0' 'shows the layers too' --layers
expect 0 '"count": 50' 'bench writes the layers as trtexec does' sh -c "$strata bench \
    '$digits' --duration 0 --dumpProfile --exportProfile='$scratch/p.json' &&
    cat '$scratch/p.json'"

# profile PATTERN CLAIM OPTION...
profile() {
    pattern=$1 claim="profile $2"
    shift 2
    expect 0 "$pattern" "$claim" $strata profile "$digits" --set runtime.threads=1 \
        --runs 5 "$@"
}

profile '^conv1 \+ relu1 +Convolution +[a-z0-9_]+ +[a-z]+\.so ' \
    'shows the users names, impl and module'
profile '^total .* 100\.0 ' 'sums up'
profile '^whole runs: [0-9.]+ us; [0-9.]+ us watched' 'holds the sum against a run'
profile '^\| layer' 'prints Markdown' -o md
profile '^layer,type,impl' 'prints CSV' -o csv
profile '"watched_us": [0-9]' 'prints JSON' -o json
profile '"floor_us": [0-9]' 'prints each step as JSON' -o json
profile '^\{"layer": "conv1' 'prints JSON lines' -o jsonl
profile '^total' 'sorts by time' --sort time --top 1
expect 0 '^2$' 'profile shows as many rows as asked for' sh -c "$strata profile \
    '$digits' --runs 2 --top 2 -o jsonl | wc -l"
profile '^total' 'takes an input' --input image=random:5
profile '^total' 'writes a report' --html "$scratch/r.html"
for claim in 'Where the time goes' 'Against the device' 'Memory of a context' \
    'The planned network' 'Fusions' 'Impls' 'conv1 + relu1' '<details' '</html>'; do
    expect 0 . "the report has: $claim" grep -F -e "$claim" "$scratch/r.html"
done
expect 1 '^0$' 'the report needs no network and runs no script' \
    grep -cE '<script|<link|src=|https?://[^w]|@import|url\(' "$scratch/r.html"
profile '^total' 'writes a trace' --trace "$scratch/t.json" --streams 2 --trace-runs 2
if command -v python3 >/dev/null; then
    cat >"$scratch/trace.py" <<'EOF'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks = {}
for e in events:
    if e["ph"] == "X":
        tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
nested = True
for slices in tracks.values():
    slices.sort(key=lambda s: (s[0], -s[1]))
    for i, a in enumerate(slices):
        nested &= all(a[1] <= b[0] + 0.01 or b[1] <= a[1] + 0.01 for b in slices[i + 1:])
names = sum(e["ph"] == "X" and e["name"] == "conv1 + relu1" for e in events)
print("streams:", *sorted(t for p, t in tracks if p == 2), end="; ")
print("nested" if nested else "overlapping", f"{names} times conv1", sep="; ")
EOF
    expect 0 '^streams: 0 1; nested; 4 times conv1$' 'a trace has a track for each stream' \
        python3 "$scratch/trace.py" "$scratch/t.json"
    printf '[network]\nformat = 1\noutputs = y\n[profile]\nT = 1..8: 8\n[input x]
shape = 2 x T\n[layer y]\ntype = Unary\nop = exp\n' >"$scratch/any.ini"
    $strata profile "$scratch/any.ini" --runs 2 --dim T=3 --trace "$scratch/t.json" \
        >"$log" 2>&1
    expect 0 '^\{48.0\}$' 'and is of the size that --dim says' python3 -c \
        'import json, sys; print({e["args"]["bytes"] for e in
        json.load(open(sys.argv[1]))["traceEvents"] if e["name"] == "y"})' \
        "$scratch/t.json"
fi
expect 3 'no named ranges' 'profile says where there are no ranges' $strata profile \
    "$digits" --ranges
expect 2 "sort 'name': time or order" 'profile refuses another order' $strata profile \
    "$digits" --sort name
expect 2 "runs '0': a number" 'profile refuses no runs' $strata profile "$digits" --runs 0
expect 2 'one network file is needed' 'profile needs a file' $strata profile

$strata build "$digits" -o "$scratch/d.engine" \
    --set 'input image.shape=4 x 1 x 8 x 8' >"$scratch/log"
expect 0 'input 3 x 1 x 8 x 8' 'bench takes a smaller batch of an engine' \
    $strata bench "$scratch/d.engine" --batch 3 --duration 0
expect 2 'a batch of 5; the engine takes 1 to 4' 'and refuses a larger one' \
    $strata bench "$scratch/d.engine" --batch 5 --duration 0

# compare CODE PATTERN CLAIM OPTION...
compare() {
    code=$1 pattern=$2 claim="compare $3"
    shift 3
    expect "$code" "$pattern" "$claim" $strata compare "$digits" \
        --set runtime.threads=1 "$@"
}

compare 0 '^ok: alike, value for value' 'finds impls that agree' --impls c,c
compare 0 '^ok: all are within the tolerance of .*0.02; all pass with --tolerance=[0-9.e-]+$' \
    'says how well precisions agree' --precisions fp32,fp16
compare 0 '^conv1 +any +fp32' 'compares inside of fused layers' --impls any,c --no-fusion
compare 0 ' on one side alone, perhaps fused on the other .--no-fusion ' \
    'says how to compare what one side fused' --with build.fusion=no

# Three siblings, whose parts of one tensor are read at its pitch.
sibling() { # sibling NAME FILTERS
    printf '[layer %s]\ntype = Convolution\ninputs = x\nfilters = %s\nkernel = 1x1\n' "$@"
    printf 'weight = w\n[layer %s.relu]\ntype = Activation\nkind = relu\n' "$1"
}
{
    printf '[network]\nformat = 1\noutputs = j, d\n[build]\nprecision = fp16\n'
    printf '[weights w]\nrandom = 1\n[input x]\nshape = 3 x 16 x 10 x 10\n'
    sibling a 24
    sibling b 16
    sibling c 8
    printf '[layer j]\ntype = Concatenation\ninputs = b.relu, a.relu, c.relu\n'
    printf '[layer d]\ntype = Pooling\nglobal = yes\nkind = max\ninputs = b.relu\n'
} >"$scratch/siblings.ini"
expect 0 '^ok: ' 'compare reads a slice where it lies' $strata compare \
    "$scratch/siblings.ini" --costs analytic --with build.merge=no
expect 0 '^\{a,b,c\} +yes +[0-9.]+ +[0-9.]+' 'explain tells both prices of siblings' \
    $strata explain "$scratch/siblings.ini" --costs analytic --fusions
expect 0 'chosen' 'explain --impls finds what a layer is merged into' \
    $strata explain "$scratch/siblings.ini" --costs analytic --impls b
compare 0 '^[0-9]+ tensors compared, fp32:nchw against fp32:nhwc' 'compares formats' \
    --formats fp32:nchw,fp32:nhwc
compare 0 'ok: all are within' 'compares precisions by the tolerance of FP16' \
    --precisions fp32,fp16
compare 1 '^[0-9]+ beyond the tolerance; first relu1 .*: .* and .* at \[0, [0-9]+, ' \
    'says where they part first' --precisions fp32,fp16 --tolerance 1e-7
compare 1 '^FAILED: [0-9]+ of [0-9]+ are beyond .* 1e-07; all pass with --tolerance=' 'says which tolerance would pass' \
    --precisions fp32,fp16 --tolerance 1e-7
compare 1 'FAILED$' 'lists what is beyond it' --precisions fp32,fp16 --tolerance 1e-7 \
    --failed
compare 0 '^tensor +impl A' 'lists nothing else' --impls any,c --failed
compare 0 '^ok: a' 'compares math modes' --maths default,tensor_op
compare 0 '^ok: a' 'of TF32, too' --maths default,tf32
compare 1 'first relu1' 'changes B alone' --with 'layer relu1.kind=tanh'
compare 1 '^[2-9] beyond the tolerance; first relu1' 'finds what follows from it too' \
    --with 'layer relu1.kind=tanh'
compare 1 '^1 beyond the tolerance; first relu1' 'or the one layer that does it' \
    --with 'layer relu1.kind=tanh' --isolate
compare 0 '^tensor,impl A' 'prints CSV' --impls any,c -o csv
compare 0 '"verdict": "ok"' 'prints JSON' --impls any,c -o json
compare 0 '^\| tensor' 'prints Markdown' --impls any,c -o md
compare 0 '^ok: a' 'takes an input' --impls any,c \
    --input "$srcdir/examples/digits/images/3-011.pgm"
expect 0 'NUMPY.*16, 8, 8' 'compare writes a tensor of both sides' sh -c "$strata compare \
    '$digits' --impls any,c --no-fusion --dump conv1 --folder '$scratch' >'$scratch/log' &&
    cat '$scratch/conv1.a.npy' '$scratch/conv1.b.npy' | tr -d '\0' | grep -a NUMPY"
compare 2 "makes a tensor 'conv9'" 'names a tensor that is not there' --impls any,c \
    --dump conv9
expect 0 'd.engine against' 'compare takes engines' $strata compare "$scratch/d.engine" \
    "$digits" --with 'input image.shape=4 x 1 x 8 x 8'
expect 1 "tensor '[a-z0-9]+' has [0-9]+ elements in .*d.engine, [0-9]+ in" \
    'compare refuses other sizes' $strata compare "$scratch/d.engine" "$digits"
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 4
[layer y]\ntype = Activation\nkind = relu\n' >"$scratch/other.ini"
expect 1 'no tensor of .* nothing is compared' 'and networks that share no tensor' \
    $strata compare "$digits" "$scratch/other.ini"
expect 2 'd.engine: is an engine already' 'and to pin the impls of an engine' \
    $strata compare "$scratch/d.engine" --impls any,c
compare 3 "cuda:9" 'says which device is missing' --devices host,cuda:9
compare 2 "impls: no layer of .* has an impl 'nosuch'" 'names an impl that is not there' \
    --impls any,nosuch
compare 2 "devices 'host': two are needed" 'needs two' --devices host
compare 2 'say what differs' 'needs to be told what differs'
compare 2 "tolerance 'x': a number" 'refuses what is no tolerance' --tolerance x
expect 2 'one network file is needed, or two' 'compare needs a file' $strata compare
finish
