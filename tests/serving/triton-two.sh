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
has_served() { # has_served PORT COUNT: soon, on a busy machine too
    tries=0
    until [ "$(served "$1")" -gt "$2" ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || return 1
        sleep 0.2
    done
}
load $front 4
has_served $one 100 && has_served $two 100
shared=$?
stop_load
result $? 'both together fail no request'
echo "$(served $one) and $(served $two)" >>"$log"
result $shared 'each has its share'

load $front 4
for at in $one $two $one $two; do
    ask "$at" /v2/repository/models/digits/load '{}' >>"$scratch/reloads"
    sleep 0.5
done
stop_load
result $? 'reloading one after the other fails no request'
[ "$(grep -c '^200' "$scratch/reloads")" -eq 4 ]
result $? 'each reload is done'

load $front 8
before=$(served $one)
kill -KILL "$second"
sleep 1
has_served $one $((before + 100))
goes=$?
stop_load
result $? 'SIGKILL of one under load fails no request'
echo "$before, then $(served $one)" >"$log"
result $goes 'the other one goes on'
finish
