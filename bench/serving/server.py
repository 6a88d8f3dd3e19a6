# SPDX-License-Identifier: Apache-2.0
"""A Triton server under measurement: its process, its HTTP requests, its counters, and
load on it by perf_analyzer. Needs Python and NumPy alone.
"""
import base64
import csv
import ctypes
import http.client
import itertools
import json
import mmap
import os
import pathlib
import subprocess
import sys
import time

import numpy as np


REGIONS = itertools.count()


class Failed(RuntimeError):
    """What a row of the table says instead of a figure."""


class Lost(Failed):
    """A device was lost meanwhile: what runs on it has to be started again."""


class Refused(Failed):
    """An HTTP answer that is not 200."""

    def __init__(self, status, text):
        super().__init__(f"{status} {text}")
        self.status, self.text = status, text


def run(command, log, seconds=120, **env):
    """Output of a command; all that it wrote is in the file `log`."""
    with open(log, "a", encoding="utf-8") as errors:
        print("$", *command, file=errors, flush=True)
        try:
            done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                                  stderr=errors, timeout=seconds, text=True, check=False,
                                  env={**os.environ, **env})
        except subprocess.TimeoutExpired:
            raise Failed(f"{command[0]} took more than {seconds} s") from None
        print(done.stdout, file=errors)
    if done.returncode:
        last = pathlib.Path(log).read_text(encoding="utf-8").strip().splitlines()[-3:]
        raise Failed(f"exit code {done.returncode}: {' / '.join(last)[-300:]}")
    return done.stdout


class Address:
    """What answers HTTP on a port of loopback: a server, or a balancer before several."""

    def __init__(self, port):
        self.port = port

    def ask(self, path, body=None, port=None, headers=None):
        """GET, or POST of bytes or of JSON: the answer's bytes; Refused, if it is not 200."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        try:
            connection.request("GET" if data is None else "POST", path, data, headers or {})
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as why:
            raise Failed(f"{path}: {why!r}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise Refused(answer.status, text.decode(errors="replace"))
        return text[int(answer.headers.get("Inference-Header-Content-Length", 0)):]

class Server(Address):
    """tritonserver with a repository, on loopback, until close()."""

    def __init__(self, args, repository, name, port, options=(), **env):
        super().__init__(port)
        self.log = args.out / f"server-{name}.log"
        command = [args.server, f"--model-repository={repository}",
                   f"--backend-directory={args.backends}", "--model-control-mode=explicit",
                   "--load-model=*", "--exit-on-error=false", "--http-address=127.0.0.1",
                   "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
                   f"--http-port={port}", f"--grpc-port={port + 1}",
                   f"--metrics-port={port + 2}", *args.server_option, *options]
        if args.plugin_path:
            command.append(f"--backend-config=strata,plugin_path={args.plugin_path}")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                            env={**os.environ, **env})

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.ask("/v2/health/live")
                return self
            except (OSError, Failed):
                time.sleep(0.1)
        self.process.kill()
        raise Failed(f"the server did not start: {self.log.read_text()[-600:]}")

    def close(self):
        """Its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def refusal(self, *request):
        """Status and text of a request; 200 where it was answered."""
        try:
            self.infer(*request)
            return 200, ""
        except Refused as why:
            return why.status, why.text

    def ready(self, model):
        try:
            self.ask(f"/v2/models/{model}/ready")
            return True
        except Refused:
            return False

    def index(self):
        return {m["name"]: m.get("state", "") + (" " + m["reason"] if m.get("reason") else "")
                for m in json.loads(self.ask("/v2/repository/index", {}))}

    def metrics(self, model):
        """The backend's counters of a model, summed over other labels."""
        time.sleep(0.1)  # a run is counted behind its answers
        found = {}
        for line in self.ask("/metrics", port=self.port + 2).decode().splitlines():
            if line.startswith("strata_") and f'model="{model}"' in line:
                name = line.split("{")[0]
                found[name] = found.get(name, 0) + float(line.split()[-1])
        return found

    def statistics(self, model):
        """Sums of ns and counts of a model."""
        stats = json.loads(self.ask(f"/v2/models/{model}/stats"))["model_stats"][0]
        found = {k: v["ns"] for k, v in stats["inference_stats"].items()}
        return {**found, "requests": stats["inference_stats"]["success"]["count"],
                "failed": stats["inference_stats"]["fail"]["count"],
                "rows": stats["inference_count"], "runs": stats["execution_count"]}

    # ---- one request by each way ----------------------------------------------------------

    def infer(self, model, name, rows, output):
        """The rows in the body; the answer's, too."""
        head = json.dumps({
            "inputs": [{"name": name, "shape": list(rows.shape), "datatype": "FP32",
                        "parameters": {"binary_data_size": rows.nbytes}}],
            "outputs": [{"name": output, "parameters": {"binary_data": True}}]}).encode()
        return self.ask(f"/v2/models/{model}/infer", head + rows.tobytes(), headers={
            "Inference-Header-Content-Length": str(len(head))})

    def infer_shared(self, model, name, rows, output, out_bytes, region):
        """The rows and the answer in a region that is registered."""
        at = region.rows_at
        region.write(rows)
        self.ask(f"/v2/models/{model}/infer", shared_request(
            name, list(rows.shape), rows.nbytes, output, at, out_bytes, region.name))
        return region.read(at, out_bytes)


def shared_request(name, shape, in_bytes, output, at, out_bytes, region):
    """A request with its rows at the begin of a region and its answer further on."""
    return {"inputs": [{"name": name, "shape": shape, "datatype": "FP32",
                        "parameters": {"shared_memory_region": region,
                                       "shared_memory_offset": 0,
                                       "shared_memory_byte_size": in_bytes}}],
            "outputs": [{"name": output, "parameters": {
                "shared_memory_region": region, "shared_memory_offset": at,
                "shared_memory_byte_size": out_bytes}}]}


class SystemRegion:
    """Memory that client and server share."""

    def __init__(self, server, in_bytes, out_bytes):
        self.server, self.name = server, f"strata-{os.getpid()}-{next(REGIONS)}"
        self.rows_at = -(-in_bytes // 4096) * 4096
        self.size = self.rows_at + out_bytes
        self.path = pathlib.Path("/dev/shm") / self.name
        self.path.write_bytes(b"\0" * self.size)
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), self.size)
        self.register(server)

    def register(self, server):
        server.ask(f"/v2/systemsharedmemory/region/{self.name}/register",
                   {"key": "/" + self.name, "offset": 0, "byte_size": self.size})

    def unregister(self, server):
        server.ask(f"/v2/systemsharedmemory/region/{self.name}/unregister", {})

    def write(self, rows):
        self.memory[:rows.nbytes] = rows.tobytes()

    def read(self, at, size):
        return self.memory[at:at + size]

    def release(self):
        self.memory.close()
        self.path.unlink()

    def close(self):
        self.unregister(self.server)
        self.release()


def open_runtime():
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise Failed("CUDA's runtime is not found: set LD_LIBRARY_PATH")


class CudaRegion:
    """The same on a GPU, by CUDA's runtime."""

    def __init__(self, server, in_bytes, out_bytes, device=0):
        self.cuda, self.server = open_runtime(), server
        self.name = f"strata-cuda-{os.getpid()}"
        self.rows_at = -(-in_bytes // 4096) * 4096
        size = self.rows_at + out_bytes
        self.call("cudaSetDevice", device)
        self.data, handle = ctypes.c_void_p(), (ctypes.c_ubyte * 64)()
        self.call("cudaMalloc", ctypes.byref(self.data), ctypes.c_size_t(size))
        self.call("cudaIpcGetMemHandle", handle, self.data)
        server.ask(f"/v2/cudasharedmemory/region/{self.name}/register", {
            "raw_handle": {"b64": base64.b64encode(bytes(handle)).decode()},
            "device_id": device, "byte_size": size})

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise Failed(f"{name}: error {status} of CUDA's runtime")

    def copy(self, to, source, size):
        self.call("cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(source),
                  ctypes.c_size_t(size), 4)  # cudaMemcpyDefault

    def write(self, rows):
        self.copy(self.data.value, np.ascontiguousarray(rows).ctypes.data, rows.nbytes)

    def read(self, at, size):
        out = np.empty(size, np.uint8)
        self.copy(out.ctypes.data, self.data.value + at, size)
        return out.tobytes()

    def close(self):
        self.server.ask(f"/v2/cudasharedmemory/region/{self.name}/unregister", {})
        self.call("cudaFree", self.data)


# ---- load ---------------------------------------------------------------------------------

def load(args, server, model, *how, seconds=None, tries=3):
    """What load_once finds; where a window was unstable or a request failed, anew with a
    longer one. What failed is told in any case."""
    window = max(int((seconds or args.seconds) * 1000 / 3), 200)
    for tries_left in reversed(range(tries)):
        try:
            return load_once(args, server, model, *how, window)
        except Failed as why:
            args.failures.append(f"{model}: {why}")
            print(f"{model} {how}: {why}", file=sys.stderr)
            if isinstance(why, Lost) or not tries_left:
                raise
        window *= 2
    return None


def load_once(args, server, model, rows, in_flight, memory, out_bytes, window):
    """perf_analyzer on a server: rows a second, microseconds of calls, and the server's
    own statistics of a request over the same time. `memory` is none, system or cuda."""
    report = args.out / f"perf-{time.monotonic_ns()}.csv"
    command = [args.perf, "-m", model, "-u", f"127.0.0.1:{server.port + 1}", "-i", "grpc",
               "-b", rows, "--concurrency-range", in_flight, "-p", window, "-r", 3,
               "-s", 999, "-f", report]
    if memory != "none":
        command += ["--shared-memory", memory, "--output-shared-memory-size", out_bytes]
    log = args.out / "perf.log"
    begin = log.stat().st_size if log.exists() else 0
    before = server.statistics(model)
    try:
        run(command, log, LD_LIBRARY_PATH=args.perf_libraries)
    finally:
        refuse_errors(log, begin)
    after = server.statistics(model)
    with open(report, encoding="utf-8") as file:
        line = next(csv.DictReader(file))
    return {"rows_per_s": float(line["Inferences/Second"]),
            "p50": float(line["p50 latency"]), "p99": float(line["p99 latency"]),
            "server": server_part(before, after)}


def refuse_errors(log, begin):
    """Requests that failed: perf_analyzer tells them, and may end as if none had."""
    with open(log, "rb") as file:
        file.seek(begin)
        text = file.read().decode(errors="replace")
    why = [l.split("had error:", 1)[1].strip() for l in text.splitlines()
           if "had error:" in l]
    if why:
        raise (Lost if " is lost " in why[0] else Failed)(why[0][:200])


def server_part(before, after):
    """Microseconds of a mean request by where the server had it, and its mean batch."""
    d = {k: after[k] - before[k] for k in after}
    each = 1e3 * max(d["requests"], 1)
    parts = {k: d[k] / each for k in ("queue", "compute_input", "compute_infer",
                                      "compute_output")}
    parts["overhead"] = d["success"] / each - sum(parts.values())
    return {**parts, "batch": d["rows"] / max(d["runs"], 1), "failed": d["failed"]}
