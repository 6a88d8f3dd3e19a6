#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: the example over Ray Serve reads digits. STRATA_RAY: a Python that has ray[serve]
# and NumPy; else skipped.
. "${srcdir:-.}/tests/tap.sh"
whole() {
    echo "1..1"
    echo "ok 1 - the example over Ray Serve # SKIP $1"
    exit 0
}
[ -n "${STRATA_TEST_LONG:-}" ] || whole 'takes half a minute; make check-long'
[ -n "${SANITIZER_CFLAGS:-}" ] && whole 'the interpreter is not built with the sanitizers'
python=${STRATA_RAY:-python3}
"$python" -c 'import numpy, ray.serve' 2>/dev/null || whole 'no ray[serve]'
$MAKE -s -C "$builddir" python-package >"$log" 2>&1 || whole 'no Python package'
export PYTHONPATH="$builddir/python/package:$srcdir/examples/ray"
export LD_LIBRARY_PATH="$builddir/.libs" NETWORK="$srcdir/examples/digits/digits.ini"
export RAY_USAGE_STATS_ENABLED=0 PYTHONDONTWRITEBYTECODE=1
"$python" - "$srcdir/examples/digits" >"$log" 2>&1 <<'EOF'
import json, pathlib, socket, sys, urllib.request
import numpy as np
import ray
from ray import serve
from digits import app
folder = pathlib.Path(sys.argv[1])
images = np.fromfile(folder / "digits-test-images.idx", np.uint8)[16:].reshape(-1, 64)
labels = np.fromfile(folder / "digits-test-labels.idx", np.uint8)[8:]
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(app)
def read(pixels):
    body = json.dumps(pixels.tolist()).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", body) as answer:
        return json.load(answer)["digit"]
right = sum(read(x) == y for x, y in zip(images[:100], labels[:100]))
print(right, "of 100 right")
assert right >= 98
serve.shutdown()
EOF
result $? 'digits are read by two replicas'
finish
