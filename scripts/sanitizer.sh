# Read by scripts/gpu-sanitize*.sh: compute-sanitizer, its limits, and what its logs say.
# Sets sanitizer, limit, choice_limit, jobs, logs and failed; `here` is the bundle.

stop() { # why
    echo "$(basename "$0" .sh): not run: $1"
    exit 1
}

# Each number bounds how many processes there are, or for how long.
expect_number() { # variable value most
    case $2 in
    '' | 0* | *[!0-9]* | ??????*) stop "$1 is not a number from 1 to $3" ;;
    esac
    [ "$2" -le "$3" ] || stop "$1 is not a number from 1 to $3"
}

limit=${STRATA_SANITIZE_LIMIT:-150}
choice_limit=${STRATA_SANITIZE_CHOICE_LIMIT:-120}
jobs=${STRATA_SANITIZE_JOBS:-8}
logs=${OUT:-${TMPDIR:-/tmp}}
failed=0
expect_number STRATA_SANITIZE_LIMIT "$limit" 86400
expect_number STRATA_SANITIZE_CHOICE_LIMIT "$choice_limit" 86400
expect_number STRATA_SANITIZE_JOBS "$jobs" 64
[ -z "${STRATA_SANITIZE_INSIDE:-}" ] || stop "what it runs has called it again"
export STRATA_SANITIZE_INSIDE=1 LC_ALL=C
export STRATA_REQUIRE_DEVICE=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"

sanitizer=$(command -v compute-sanitizer)
for file in /usr/local/cuda*/bin/compute-sanitizer \
    /usr/local/cuda*/compute-sanitizer/compute-sanitizer; do
    [ -n "$sanitizer" ] || [ ! -x "$file" ] || sanitizer=$file
done
[ -n "$sanitizer" ] || stop "compute-sanitizer is not installed"

launches() { # file...
    for count in "$@"; do
        od -An -t u8 -N 8 "$count" 2>/dev/null
    done | awk '{n += $1} END {print n + 0}'
}

# Different kernels that files name in lines of a kind.
kernels() { # loaded|launched file...
    kind=$1
    shift
    sed -n "s/^$kind //p" "$@" 2>/dev/null | sort -u
}

# Prints what the command prints, and its exit status at the end of it: 124 at the limit,
# also where timeout had to kill. What outlives its parent then is of timeout's group.
counted() { # seconds count_file command...
    seconds=$1 count_file=$2
    shift 2
    began=$(date +%s)
    STRATA_LAUNCH_COUNT=$count_file timeout -k 1 "$seconds" "$@" &
    group=$!
    wait "$group"
    ended=$?
    [ "$ended" -ne 137 ] || [ $(($(date +%s) - began)) -lt "$seconds" ] || ended=124
    [ "$ended" -ne 124 ] || kill -s KILL -- "-$group" 2>/dev/null
    printf '\nexit status %s\n' "$ended" # what was cut may not have ended its line
}

# The same of a program of the bundle under a tool. Which kernels that looks at, if not at
# all: a regular expression of their names, $looked_at.
counted_under() { # tool seconds count_file program argument...
    tool=$1 seconds=$2 count_file=$3 more=
    shift 3
    [ "$tool" != synccheck ] || more="--num-cuda-barriers 65536" # else some are lost
    [ -z "${looked_at:-}" ] || more="$more --kernel-name regex=$looked_at"
    # shellcheck disable=SC2086 # an option and its value
    counted "$seconds" "$count_file" "$sanitizer" --tool "$tool" $more \
        --target-processes all --error-exitcode 99 --print-limit 20 \
        env LD_PRELOAD="$here/lib/launch_count.so" "$here/run.sh" "$@"
}

# How many of the logs have that line.
count_logs() { # pattern file...
    pattern=$1
    shift
    grep -lE "$pattern" "$@" 2>/dev/null | wc -l
}

# Of each log the tool's own sum; of one that ended without, what it reported until then,
# "at least" so many. "no" when an end without a sum is not the limit's.
count_errors() { # file...
    awk '
        function add() {
            if (!summed && cut) {n += reports; least = "at least "}
            if (!summed && !cut) missing = 1
        }
        FNR == 1 && NR > 1 {add()}
        FNR == 1 {summed = cut = reports = 0}
        /ERROR SUMMARY:|RACECHECK SUMMARY:/ {
            for (i = 1; i < NF; i++)
                if ($(i + 1) ~ /^(error|hazard)/) {n += $i; break}
            summed = 1
        }
        /^exit status 124$/ {cut = 1}
        /COMPUTE-SANITIZER|SUMMARY|Target application|process didn/ {next}
        /^========= [^ ]/ {reports++}
        END {
            add()
            print (missing && !n ? "no" : least n + 0)
        }' "$@"
}

# A line of what logs "$logs/NAME.*.log" of so many processes say; their sum is
# $logs/NAME.log, what was not launched $logs/NAME.unseen. Of kernels in the file that
# `asked` names, if it does, else of those that were loaded.
tell() { # tool program name processes start
    name=$3 log=$logs/$3.log
    errors=$(count_errors "$logs/$name".*.log)
    cut=$(count_logs '^exit status 124$' "$logs/$name".*.log)
    cat "$logs/$name".*.log >"$log"
    status=$(sed -n 's/^exit status //p' "$log" | grep -v '^124$' | sort -n | tail -n 1)
    status=${status:-0}
    if [ -n "${asked:-}" ]; then
        cp "$asked" "$logs/$name.loaded"
    else
        kernels loaded "$logs/$name".*.kernels >"$logs/$name.loaded"
    fi
    kernels launched "$logs/$name".*.kernels >"$logs/$name.launched"
    comm -23 "$logs/$name.loaded" "$logs/$name.launched" >"$logs/$name.unseen"
    launched=$(launches "$logs/$name".*.launches)
    verdict=
    [ "$status" -eq 0 ] || verdict="status $status"
    [ "$cut" -eq 0 ] ||
        verdict="${verdict:+$verdict, }$cut of $4 processes cut at $limit s"
    [ "$launched" -gt 0 ] || verdict="no kernel ran: not checked"
    [ "$errors" = 0 ] || verdict=${verdict:-errors}
    [ -z "$verdict" ] || failed=1
    printf '%-10s %-18s %5s errors, %6s launches of %4s of %4s kernels, %3s s: %s\n' \
        "$1" "$2" "$errors" "$launched" \
        "$(comm -12 "$logs/$name.loaded" "$logs/$name.launched" | wc -l)" \
        $(($(wc -l <"$logs/$name.loaded"))) $(($(date +%s) - $5)) \
        "${verdict:+FAILED (}${verdict:-ok}${verdict:+)}"
    [ -z "$verdict" ] || grep -E '^=========|^failed|^\[(FAIL|ERR)|^\[----\] ' "$log" |
        grep -vE 'Host Frame|Saved host' | head -n 40
}
