#!/bin/sh
# CPU seconds of compiling each object, the longest first, and their sum:
#   build-times.sh MAKE OBJECT...   (make build-times: every .cu)
# One at a time and without ccache, in the build folder; objects are compiled anew.
set -eu
make=$1
shift
export CCACHE_DISABLE=1
for object; do
    rm -f "$object"
    # What `times` says last is of the children: user and system, as 1m2.3s.
    { "$make" -s "$object" >&2 || echo failed; times; } | tr -d s | tr m ' ' |
        awk -v object="$object" '/failed/ { exit } { seconds = 60 * ($1 + $3) + $2 + $4 }
            END { if (seconds) printf "%8.1f  %s\n", seconds, object }'
done | sort -rn | awk -v objects=$# '{ print; sum += $1 }
    END { printf "%8.1f  in all\n", sum; exit NR != objects }'
