#!/bin/sh
# Run compute-sanitizer's four tools over one launch of every kernel that a plan of the
# test networks can choose.
#   gpu-sanitize-plans.sh [TOOL]...  memcheck racecheck initcheck synccheck; choose: none
#   STRATA_SANITIZE_LIMIT=SECONDS    of a tool; default 150
#   STRATA_SANITIZE_CHOICE_LIMIT=SECONDS   of the first pass; default 120
#   STRATA_SANITIZE_JOBS=N           processes beside each other, up to 64; default 8
#   STRATA_SANITIZE_RUNS=FILE        plans.runs of an earlier call, in place of the first
#                                    pass; plans.kernels must lie beside it
#   STRATA_SANITIZE_NETWORKS="A B"   the first pass sees only these
# The networks are those of bench/nets, examples, tests/cuda/nets and tests/data, a
# decoder, and quantised ones that are made of them here, each in FP32, FP16 and BF16 with
# and without tensor cores, at a batch of 1, some of 8. Without a tool, all impls and
# conversions that a plan of each would time run once (tests/cuda/candidates.c), and are
# seen to launch kernels: plans.kernels. Few of the runs launch all of these and are kept:
# plans.runs. Those run under the tools.
# Prints a line a tool: errors, launches, and how many of plans.kernels were launched; the
# others are named in a file beside the log. What failed, no launch, and running out of
# time are failures. Kernels of cuBLAS and cuDNN do not count: memcheck alone looks at
# them. The other tools see runs of impls over these in processes of their own, which look
# at the kernels of ours that come with them; but not those that end racecheck and
# initcheck, or hang.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/sanitizer.sh"
tools=${*:-memcheck racecheck initcheck synccheck}
[ "$tools" != choose ] || tools=
runs=${STRATA_SANITIZE_RUNS:-}
beside=4 # processes for impls over libraries
work=$(mktemp -d "${TMPDIR:-/tmp}/plans.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

quantise() { # net argument...
    "$here/run.sh" strata quantise "$@" --allow-untrusted-plugins --costs analytic \
        >"$work/$(basename "$1" .ini).$$.log" 2>&1 ||
        echo "cannot quantise $*" | tee -a "$work/lost"
}

# Samples without meaning: FILE.npy of floats or of whole numbers below 1000.
write_sample() { # file type count dims
    python3 -c '
import random, struct, sys
path, kind, count, dims = sys.argv[1:]
random.seed(1)
head = "{\"descr\": \"<%s4\", \"fortran_order\": False, \"shape\": (%s), }" % (kind, dims)
head += " " * (-(len(head) + 11) % 64) + "\n"
values = [random.gauss(0, 1) if kind == "f" else random.randrange(1000)
          for _ in range(int(count))]
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    file.write(struct.pack("<%d%s" % (len(values), kind), *values))' "$@"
}

# All networks, into the folder where we are.
make_networks() {
    cp "$here"/share/bench/nets/*.ini "$here"/share/tests/cuda/nets/*.ini \
        "$here"/share/tests/data/decoder/decoder.* "$here"/share/examples/models/*.ini \
        "$here"/share/examples/digits/digits.* .
    rm -f resnet152.ini densenet121_running.ini # the layers of others, more of them
    python3 "$here/share/scripts/convert_models.py" "$here/share/models" . >convert.log
    python3 "$here/share/examples/language/decoder.py" --type F16 --context 256 \
        --random layers=2,hidden=512,heads=8,kv_heads=4,ffn=1536,vocabulary=2000 \
        -o wide.ini >decoder.log
    write_sample image.npy f 150528 "1, 3, 224, 224"
    write_sample ids.npy i 128 "1, 128"
    for net in resnet18 resnet50 mobilenet_v2 densenet121 googlenet; do
        quantise "$net.ini" --data image.npy -o "$net-int8.ini" &
    done
    quantise resnet50.ini --data image.npy --float-first -o resnet50-first-int8.ini &
    quantise digits.ini --data "$here/share/examples/digits/digits-test-images.idx" \
        --samples 20 -o digits-int8.ini &
    quantise encoder.ini --data ids.npy -o encoder-int8.ini &
    quantise encoder.ini --data ids.npy --to e4m3 -o encoder-e4m3.ini &
    quantise encoder.ini --weights-only --bits 4 -o encoder-w4.ini &
    quantise wide.ini --weights-only -o wide-w8.ini &
    quantise wide.ini --weights-only --bits 4 --group 128 -o wide-w4.ini &
    wait
}

cases() { # of the networks here
    for file in *.ini; do
        case " ${STRATA_SANITIZE_NETWORKS:-${file%.ini}} " in
        *" ${file%.ini} "*) ;;
        *) continue ;;
        esac
        for kind in fp16:tensor_op fp32:default fp16:default fp32:tensor_op \
            bf16:tensor_op bf16:default; do
            echo "$file:$kind"
        done
        case $file in
        resnet50.ini | mobilenet_v2.ini | encoder.ini | googlenet.ini | unet.ini)
            echo "$file:fp16:tensor_op:8"
            ;;
        esac
    done
}

# One case without a tool, to $work/choose.N.log, in what is left of the choice's time.
run_case() { # number case
    left=$((choice_limit - ($(date +%s) - start)))
    [ "$left" -gt 0 ] || return 0
    counted "$left" "$work/choose.$1" env LD_PRELOAD="$here/lib/launch_count.so" \
        "$here/run.sh" tests/cuda/candidates "$2" >"$work/choose.$1.log" 2>&1
}

# Cases in turns: a process takes every N-th, until its time is over.
choose_runs() {
    runs=$logs/plans.runs start=$(date +%s) job=0
    cases | awk '{print NR, $0}' >"$work/numbered"
    while [ "$job" -lt "$jobs" ]; do
        awk -v n="$jobs" -v i="$job" 'NR % n == i' "$work/numbered" |
            while read -r number case; do
                run_case "$number" "$case"
            done &
        job=$((job + 1))
    done
    wait
    python3 "$here/choose_runs.py" "$work" "$logs/plans.kernels" >"$runs"
    ended=$(count_logs '^exit status 0$' "$work"/choose.*.log)
    all=$(($(wc -l <"$work/numbered")))
    printf '%-10s %-18s %s of %s cases ended, %s runs; %s launch the %s kernels, %s s\n' \
        chosen plans "$ended" "$all" "$(cat "$work"/choose.*.log | grep -c '^took')" \
        $(($(wc -l <"$runs"))) $(($(wc -l <"$logs/plans.kernels"))) \
        $(($(date +%s) - start))
    cat "$work"/choose.*.log | grep '^failed' | cut -c1-300 | sort | uniq -c | head -n 20
    while read -r number case; do
        grep -q '^exit status 0$' "$work/choose.$number.log" 2>/dev/null || echo "$case"
    done <"$work/numbered" >"$logs/plans.unended"
    [ "$ended" -eq "$all" ] && [ -s "$runs" ] || failed=1
}

# The names in C++ of the kernels of modules over libraries, as a regular expression.
kernels_beside() {
    names=$(grep -E '^(cublaslt|[a-z_]*-cudnn)\.so ' "$logs/plans.kernels" |
        sed -n 's/.* _Z[0-9]*\([a-z0-9_]*_kernel\).*/\1/p' | sort -u | paste -s -d '|')
    [ -z "$names" ] || echo ".*($names).*"
}

# Of the runs one part in so many, to logs from the number `job` on.
check_runs() { # tool parts option value...
    tool=$1 parts=$2
    shift 2
    part=0
    while [ "$part" -lt "$parts" ]; do
        # shellcheck disable=SC2046 # cases have no blanks
        counted_under "$tool" "$limit" "$logs/$name.$job.launches" tests/cuda/candidates \
            -e "$@" -k "$runs" -p "$part/$parts" \
            $(cut -d ' ' -f 2 "$runs" | sort -u) >"$logs/$name.$job.log" 2>&1 &
        part=$((part + 1)) job=$((job + 1))
    done
}

check() { # tool
    name=$1-plans job=0 start=$(date +%s) looked_at=
    rm -f "$logs/$name".*
    if [ "$1" = memcheck ]; then
        check_runs "$1" "$jobs" -w ''
    else
        check_runs "$1" "$jobs" -w cudnn,cublaslt
        looked_at=$(kernels_beside)
        ends=persistent,cublaslt_rows
        [ "$1" != synccheck ] || ends=
        [ -z "$looked_at" ] || check_runs "$1" "$beside" -o cudnn,cublaslt -w "$ends"
    fi
    wait
    asked=$logs/plans.kernels
    tell "$1" plans "$name" "$job" "$start"
}

[ -z "$runs" ] || cp "$(dirname "$runs")/plans.kernels" "$logs/" 2>/dev/null
case $runs in
'' | /*) ;;
*) runs=$PWD/$runs ;;
esac
case $logs in
/*) ;;
*) logs=$PWD/$logs ;;
esac
cd "$work" || exit 1
start=$(date +%s)
make_networks
printf '%-10s %-18s %s, %s s\n' networks plans "$(ls ./*.ini | wc -l)" \
    $(($(date +%s) - start))
[ ! -e "$work/lost" ] || failed=1
[ -n "$runs" ] || choose_runs
for tool in $tools; do
    check "$tool"
done
exit $failed
