# SPDX-License-Identifier: Apache-2.0
"""Clients that ask one after the other through an address, with memory that they share
with all servers behind it: what a balancer passes on is small so. perf_analyzer cannot
have it, which registers memory with one server alone.
"""
import http.client
import json
import multiprocessing
import time

from server import Failed, SystemRegion, shared_request


def ask_until(port, path, body, until):
    """Times of answers, and errors. Nothing is asked a second time."""
    answers, errors, connection = [], [], None
    while time.monotonic() < until:
        try:
            connection = connection or http.client.HTTPConnection("127.0.0.1", port,
                                                                  timeout=30)
            connection.request("POST", path, body)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise Failed(f"{answer.status} {text[:100]}")
            answers.append(time.monotonic())
            if answer.getheader("Connection") == "close":
                connection = None
        except (OSError, http.client.HTTPException, Failed) as why:
            errors.append(f"{type(why).__name__}: {why}")
            connection = None
    return answers, errors


def client(pipe, *arguments):
    pipe.send(ask_until(*arguments))
    pipe.close()


def collect(pipes):
    answers, errors = [], []
    for pipe in pipes:
        try:
            found = pipe.recv()
        except EOFError:
            found = [], ["a client ended early"]
        answers += found[0]
        errors += found[1]
    return sorted(answers), errors


class Clients:
    """`n` processes that ask, each for itself; one that is in the way of none. All read the
    same rows, and each has outputs of its own."""

    def __init__(self, servers, model, tensor, rows, output, out_bytes, n):
        shape = [rows] + [int(k) for k in tensor["shape"][1:]]
        size = 4
        for k in shape:
            size *= k
        self.bodies = []
        self.use(model)
        self.rows, self.servers = rows, servers
        self.region = SystemRegion(servers[0], size, n * out_bytes)
        for server in servers[1:]:
            self.region.register(server)
        for k in range(n):
            self.bodies.append(json.dumps(shared_request(
                tensor["name"], shape, size, output, self.region.rows_at + k * out_bytes,
                out_bytes, self.region.name)))

    def use(self, model):
        """Another model of the same inputs and outputs."""
        self.path = f"/v2/models/{model}/infer"

    def run(self, ports, seconds, meanwhile=lambda: None, n=None):
        """Rows a second but for the first tenth, and errors; by the first `n` clients, who
        ask one port each, in turns."""
        begin = time.monotonic()
        pipes, work = [], []
        for k, body in enumerate(self.bodies[:n]):
            ours, theirs = multiprocessing.Pipe(False)
            work.append(multiprocessing.Process(target=client, args=(
                theirs, ports[k % len(ports)], self.path, body, begin + seconds)))
            work[-1].start()
            theirs.close()
            pipes.append(ours)
        meanwhile()
        answers, errors = collect(pipes)
        for process in work:
            process.join()
        first = begin + seconds / 10
        counted = sum(first <= t < begin + seconds for t in answers)
        return {"rows_per_s": counted * self.rows / (seconds * 0.9),
                "answers": len(answers), "errors": errors}

    def close(self):
        """Servers that are gone have forgotten it."""
        for server in self.servers:
            try:
                self.region.unregister(server)
            except (OSError, Failed):
                pass
        self.region.release()
