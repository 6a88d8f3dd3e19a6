#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: two servers behind HAProxy: one is killed under load, both are reloaded one after
# the other, and no client sees an error.
. "${srcdir:-.}/tests/serving/server.sh"
haproxy=$(PATH=$PATH:/usr/sbin command -v haproxy) || whole 'no HAProxy'

digits_engine "$scratch/digits.engine" &&
    "$strata" deploy "$scratch/digits.engine" -o "$repository" >"$log" 2>&1
one=$port two=$((port + 10)) front=$((port + 20))
start $one --load-model=digits
start $two --load-model=digits
second=$pid
result $? 'two servers start'

BALANCER=127.0.0.1:$front TRITON_1=127.0.0.1:$one TRITON_2=127.0.0.1:$two MODEL=digits \
    "$haproxy" -db -f "$srcdir/serving/haproxy.cfg" >"$scratch/haproxy" 2>&1 &
pids="$pids $!"
wait_for $front
result $? 'HAProxy is before them'

served() { # served PORT: requests that the server there has answered
    ask "$1" /v2/models/digits/stats | sed 's/.*"success":{"count":\([0-9]*\).*/\1/'
}
load $front 4
sleep 2
stop_load
result $? 'both together fail no request'
echo "$(served $one) and $(served $two)" >>"$log"
[ "$(served $one)" -gt 100 ] && [ "$(served $two)" -gt 100 ]
result $? 'each has its share'

load $front 4
sleep 1
for at in $one $two $one $two; do
    ask "$at" /v2/repository/models/digits/load '{}' >>"$scratch/reloads"
    sleep 0.5
done
stop_load
result $? 'reloading one after the other fails no request'
[ "$(grep -c '^200' "$scratch/reloads")" -eq 4 ]
result $? 'each reload is done'

load $front 8
sleep 1
before=$(served $one)
kill -KILL "$second"
sleep 2
after=$(served $one)
stop_load
result $? 'SIGKILL of one under load fails no request'
echo "$before, then $after" >"$log"
[ "$after" -gt "$((before + 100))" ]
result $? 'the other one goes on'
finish
