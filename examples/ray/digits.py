# SPDX-License-Identifier: Apache-2.0
"""Digits over Ray Serve: `NETWORK=digits.ini serve run digits:app`, then POST 64 pixels.

Ray costs milliseconds a request where Triton costs a tenth of one: for pipelines that are
Python anyway. Each replica has an engine of its own; requests of one share a batch.
"""
import os

import numpy as np
from ray import serve
from starlette.requests import Request


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 1})
class Digits:
    def __init__(self):
        import strata
        self.net = strata.load(os.environ["NETWORK"], threads=1)

    async def __call__(self, request: Request) -> dict:
        pixels = np.asarray(await request.json(), np.float32).reshape(1, 8, 8) / 240
        prob = (await self.net.submit_async(image=pixels)).prob.numpy().ravel()
        return {"digit": int(prob.argmax()), "probability": float(prob.max())}


app = Digits.bind()
