#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: digits served by a real Triton Inference Server, on loopback: three ways in, answers
# bit for bit those of `strata run`, refusals, a damaged engine, sequences, reloads.
. "${srcdir:-.}/tests/serving/server.sh"

digits_engine "$scratch/digits.engine" &&
    "$strata" deploy "$scratch/digits.engine" -o "$repository" >"$log" 2>&1
result $? 'an engine for several batches is deployed'
digits_engine "$repository/bare.strata/1/model.engine"
mkdir -p "$repository/cut.strata/1"
head -c 60000 "$repository/digits/1/model.engine" >"$repository/cut.strata/1/model.engine"

cat >"$scratch/sum.ini" <<'EOF'
[network]
format = 1
outputs = y
[input x]
shape = 2 x 3
[state total]
shape = 2 x 3
next = sum
[layer sum]
type = ElementWise
op = sum
inputs = total, x
[layer y]
type = Activation
kind = relu
inputs = sum
EOF
mkdir -p "$repository/sum.strata/1"
"$strata" build "$scratch/sum.ini" -o "$repository/sum.strata/1/model.engine" >"$log" 2>&1

start "$port" --load-model=digits --load-model=bare.strata --load-model=sum.strata \
    --exit-on-error=false --load-model=cut.strata
result $? 'the server starts'

ask "$port" /v2/models/bare.strata/config >"$log" && "$python" - "$log" <<'EOF'
import json, sys
found = json.loads(open(sys.argv[1]).read().partition(" ")[2])
wanted = {
    "backend": "strata", "max_batch_size": 32,
    "input": [("image", "TYPE_FP32", [1, 8, 8])],
    "output": [("prob", "TYPE_FP32", [10, 1, 1])],
    "dynamic_batching": [1, 4, 32],
    "instance_group": [("KIND_CPU", 1)]}
for side in "input", "output":
    found[side] = [(t["name"], t["data_type"], t["dims"]) for t in found[side]]
found["dynamic_batching"] = found["dynamic_batching"]["preferred_batch_size"]
found["instance_group"] = [(g["kind"], g["count"]) for g in found["instance_group"]]
assert {k: found[k] for k in wanted} == wanted, found
EOF
result $? 'a folder with an engine alone has all of its config from the engine'

for way in http grpc shm; do
    "$python" "$srcdir/examples/triton/digits_client.py" "$digits" --way $way --rows 32 \
        --http "127.0.0.1:$port" --grpc "127.0.0.1:$((port + 1))" \
        --save "$scratch/$way.npy" >"$log" 2>&1 && grep -q '356 of 359 right' "$log"
    result $? "356 of 359 digits are right by $way"
done

# The same rows in the same batches: 11 of 32, and 7.
"$python" - "$srcdir/examples/triton" "$digits" "$scratch" <<'EOF'
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from digits_client import read_digits
images, _ = read_digits(pathlib.Path(sys.argv[2]))
for k in range(0, len(images), 32):
    rows = np.zeros((32, 1, 8, 8), np.float32)
    rows[:len(images[k:k + 32])] = images[k:k + 32]
    np.save(f"{sys.argv[3]}/rows.{k // 32}.npy", rows)
EOF
for k in 0 1 2 3 4 5 6 7 8 9 10 11; do
    "$strata" run "$repository/digits/1/model.engine" "image=$scratch/rows.$k.npy" \
        --output "prob=$scratch/prob.$k.npy" >>"$log" 2>&1
done
"$python" - "$scratch" >"$log" 2>&1 <<'EOF'
import sys
import numpy as np
ours = np.concatenate([np.load(f"{sys.argv[1]}/prob.{k}.npy").reshape(-1, 10)
                       for k in range(12)])[:359]
for way in "http", "grpc", "shm":
    theirs = np.load(f"{sys.argv[1]}/{way}.npy")
    assert theirs.tobytes() == ours.tobytes(), (way, np.abs(theirs - ours).max())
EOF
result $? 'every output is that of strata run, bit for bit'

# ---- what is wrong ------------------------------------------------------------------------
infer() { # infer MODEL SHAPE COUNT
    ask "$port" "/v2/models/$1/infer" "$("$python" -c "import json
print(json.dumps({'inputs': [{'name': '${4:-image}', 'datatype': 'FP32', 'shape': [$2],
                              'data': [0.5] * $3}]}))")"
}
expect 0 '^400 .*batch-size must be <= 32' '33 rows are refused' infer digits '33, 1, 8, 8' 2112
expect 0 "^400 .*'image'.*\[-1,1,8,8\]" 'a wrong shape is refused by name' \
    infer digits '1, 1, 8, 9' 72
expect 0 "^400 .*'picture'" 'an unknown input is refused by name' \
    infer digits '1, 1, 8, 8' 64 picture
expect 0 '"cut.strata".*"state":"UNAVAILABLE".*needs .* bytes|"cut.strata".*"UNAVAILABLE".*model.engine' \
    'a damaged engine is unavailable by name' ask "$port" /v2/repository/index '{}'
expect 0 '^200 .*prob' 'the others serve' infer bare.strata '1, 1, 8, 8' 64

# ---- sequences ----------------------------------------------------------------------------
"$python" - "127.0.0.1:$port" >"$log" 2>&1 <<'EOF'
import sys
import numpy as np
import tritonclient.http as http
client = http.InferenceServerClient(sys.argv[1])
def step(sequence, values, **flags):
    x = http.InferInput("x", [1, 3], "FP32")
    x.set_data_from_numpy(np.array([values], np.float32))
    return client.infer("sum.strata", [x], sequence_id=sequence, **flags).as_numpy("y")[0]
a, b = np.float32([1, 2, 3]), np.float32([4, 5, 6])
assert (step(7, a, sequence_start=True) == a).all()
assert (step(8, b, sequence_start=True) == b).all()
for k in range(2, 30):
    assert (step(7, a) == k * a).all(), k
    if k % 3 == 0:
        assert (step(8, b) == (k // 3 + 1) * b).all(), k
assert (step(7, a, sequence_end=True) == 30 * a).all()
assert (step(9, b, sequence_start=True) == b).all()
EOF
result $? 'sequences keep their states beside each other'

# ---- under load ---------------------------------------------------------------------------
load "$port" 4
for _ in 1 2 3 4 5; do
    ask "$port" /v2/repository/models/digits/load '{}' >>"$scratch/reloads" 2>&1
    sleep 0.5
done
stop_load
result $? 'five reloads under load fail no request'
[ "$(grep -c '^200' "$scratch/reloads")" -eq 5 ]
result $? 'each reload is done'

ask $((port + 2)) /metrics >"$log"
grep -q '^strata_batch_rows_total{batch="32",model="digits",version="1"} [1-9]' "$log" &&
    grep -q '^strata_copied_in_bytes_total{.*model="bare.strata".*} [1-9]' "$log"
result $? 'the metrics tell of batches and copies'

ask "$port" /v2/models/digits/stats >"$log" && "$python" - "$log" <<'EOF'
import json, sys
stats = json.loads(open(sys.argv[1]).read().partition(" ")[2])["model_stats"][0]
times = stats["inference_stats"]
assert times["success"]["count"] > 10 and times["fail"]["count"] == 0, times
for part in "queue", "compute_input", "compute_infer", "compute_output":
    assert times[part]["ns"] / times[part]["count"] < 10e9, (part, times)
EOF
result $? 'statistics are of a clock that the server shares'

echo 'backend: "strata" instance_group [{kind: KIND_CPU count: 2}]' \
    >"$repository/digits/config.pbtxt"
ask "$port" /v2/repository/models/digits/load '{}' >"$log"
load "$port" 4
stop_load
result $? 'two instances answer'

kill -TERM "$pid"
wait "$pid"
status=$?
tail -n 5 "$scratch/server.$port" >"$log"
[ $status -eq 0 ]
result $? 'SIGTERM ends it in order'
pids=
finish
