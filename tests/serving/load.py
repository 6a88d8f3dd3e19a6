# SPDX-License-Identifier: Apache-2.0
"""Clients that ask one after the other, until a file appears; then counts.

    load.py HOST:PORT MODEL STOP-FILE [CLIENTS]

Each request is HTTP of its own making, with no second try: what a server or a balancer
refuses is an error here. STOP-FILE.begun appears once there were some of each client.
Prints `answers N errors M`, and the first errors.
"""
import http.client
import json
import os
import sys
import threading
import time

BEGUN = 10  # requests
BODY = json.dumps({"inputs": [{"name": "image", "shape": [1, 1, 8, 8], "datatype": "FP32",
                               "data": [k % 7 / 7 for k in range(64)]}]})


class Client(threading.Thread):
    def __init__(self, address, model, stop):
        super().__init__()
        self.address, self.path, self.stop = address, f"/v2/models/{model}/infer", stop
        self.answers, self.errors, self.values = 0, [], set()

    def ask(self, connection):
        connection.request("POST", self.path, BODY)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {text[:200]}")
        self.values.add(tuple(json.loads(text)["outputs"][0]["data"]))
        self.answers += 1
        return answer.getheader("Connection") != "close"

    def run(self):
        connection = None
        while not os.path.exists(self.stop):
            try:
                connection = connection or http.client.HTTPConnection(self.address,
                                                                      timeout=60)
                if not self.ask(connection):
                    connection = None
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                connection = None


def main(address, model, stop, clients="4"):
    threads = [Client(address, model, stop) for _ in range(int(clients))]
    for thread in threads:
        thread.start()
    while any(t.answers + len(t.errors) < BEGUN for t in threads):
        time.sleep(0.01)
    with open(stop + ".begun", "w", encoding="ascii"):
        pass
    for thread in threads:
        thread.join()
    errors = [e for t in threads for e in t.errors]
    values = set().union(*(t.values for t in threads))
    print(f"answers {sum(t.answers for t in threads)} errors {len(errors)} "
          f"different {len(values)}")
    for error in errors[:10]:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
