# SPDX-License-Identifier: Apache-2.0
"""Requests: futures, coroutines, and how they end."""
import asyncio
import threading
import time
import unittest

import strata
from support import buffer, flat, load, positive, relu


class Submit(unittest.TestCase):
    def test_rows_come_back_in_futures(self):
        net = load("8 x 16")
        futures = [net.submit(x=buffer((rows, 16), value=rows)) for rows in (1, 2, 8, 3)]
        for rows, future in zip((1, 2, 8, 3), futures):
            y = future.result(60).y
            self.assertEqual((y.shape, flat(y)), ((rows, 16), [rows] * rows * 16))

    def test_a_row_without_its_dim_is_one(self):
        y = load("8 x 16").submit(buffer((16,))).result(60).y
        self.assertEqual((y.shape, flat(y)), ((16,), positive(flat(buffer((16,))))))

    def test_more_rows_than_a_run_takes(self):
        for most in (0, 5):
            net = load("8 x 16")
            net.batcher(max_batch=most)
            for rows in (9, 16, 17, 1001):
                x = buffer((rows, 16))
                y = net.submit(x).result(60).y
                self.assertEqual((y.shape, flat(y)), ((rows, 16), positive(flat(x))))

    def test_turns_are_said_or_not(self):
        for turns in (None, True, False):
            net = load("8 x 16")
            net.batcher(turns=turns)
            y = net.submit(buffer((16,))).result(60).y
            self.assertEqual(flat(y), positive(flat(buffer((16,)))))

    def test_refused_in_the_middle(self):
        net = load("8 x 65536")
        net.batcher(max_waiting=1)
        x = memoryview(bytes(4 * 256 * 65536)).cast("f", [256, 65536])
        with self.assertRaises(strata.Busy):
            net.submit(x).result(60)
        self.assertEqual(flat(net.submit(x[:1]).result(60).y)[:3], [0, 0, 0])

    def test_a_future_is_one_of_the_library(self):
        from concurrent.futures import (FIRST_COMPLETED, CancelledError, Future,
                                        as_completed, wait)
        net = load("8 x 16")
        futures = [net.submit(buffer((16,), value=i)) for i in range(200)]
        self.assertTrue(all(isinstance(f, Future) for f in futures))
        self.assertTrue(wait(futures[:5], 60, FIRST_COMPLETED).done)
        self.assertEqual(sorted(flat(f.result().y)[0] for f in as_completed(futures, 60)),
                         list(range(200)))
        called = []
        for f in futures[::2]:
            f.add_done_callback(called.append)
        self.assertEqual(called, futures[::2])
        self.assertEqual((futures[0].done(), futures[0].running(), futures[0].cancel(),
                          futures[0].exception()), (True, False, False, None))
        self.assertIn("finished", repr(futures[1]))
        gone = net.submit(buffer((16,)))
        if gone.cancel():
            with self.assertRaises(CancelledError):
                gone.result(60)

        async def wrapped():
            return flat((await asyncio.wrap_future(net.submit(buffer((16,), value=3)))).y)[0]

        self.assertEqual(asyncio.run(wrapped()), 3)

    def test_many_threads(self):
        net = load("8 x 16")
        net.batcher(max_delay_us=100)
        wrong = []

        def ask(value):
            for _ in range(50):
                y = net.submit(buffer((16,), value=value)).result(60).y
                if flat(y) != [value] * 16:
                    wrong.append(value)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_coroutines_wait_in_their_own_loop(self):
        net = load("8 x 16")

        async def ask():
            found = await asyncio.gather(*(net.submit_async(buffer((16,), value=i))
                                           for i in range(40)))
            return [flat(out.y)[0] for out in found]

        for _ in range(3):
            self.assertEqual(asyncio.run(ask()), list(range(40)))

    def test_what_is_not_wanted_any_more(self):
        net = load("8 x 16")
        futures = [net.submit(buffer((16,))) for _ in range(100)]
        for f in futures[::2]:
            f.cancel()
        for f in futures:
            self.assertTrue(f.cancelled() or len(flat(f.result(60).y)) == 16)

    def test_any_number_may_wait_and_each_only_so_long(self):
        from concurrent.futures import CancelledError
        gate, found = threading.Event(), []

        @strata.layer
        def wait_for_gate(x, y):
            gate.wait(60)
            memoryview(y).cast("B")[:] = memoryview(x).cast("B")
        gate.set()
        text = relu("8 x 16").replace("Activation\nkind = relu", "WaitForGate")
        net, full = strata.load(text=text), strata.load(text=text)
        net.batcher()
        full.batcher(max_waiting=1)
        wait_for_gate.remove()

        def ask(future, limit):
            try:
                found.append(flat(future.result(limit).y)[0])
            except (TimeoutError, CancelledError, strata.Busy) as error:
                found.append(type(error).__name__)

        def meanwhile(future, limits, then=lambda: None):
            found.clear()
            threads = [threading.Thread(target=ask, args=(future, limit)) for limit in limits]
            for t in threads:
                t.start()
            while len(found) < sum(limit is not None and limit < 1 for limit in limits):
                time.sleep(0.001)
            then()
            for t in threads:
                t.join()
            return found
        for limits in ((None,), (60, None, 60), (0, -1), (0.01, 60), (60, 0.01, 60)):
            gate.clear()
            future = net.submit(buffer((16,), value=2))
            whole = [2 if limit is None or limit > 1 else "TimeoutError" for limit in limits]
            self.assertCountEqual(meanwhile(future, limits, gate.set), whole)
            self.assertEqual(flat(future.result().y)[0], 2)
        for limits in ((None,), (60, None)):
            gate.clear()
            future = net.submit(buffer((16,)))
            self.assertEqual(meanwhile(future, limits, future.cancel),
                             ["CancelledError"] * len(limits))
            gate.set()
        gate.clear()
        failed = full.submit(buffer((32, 16)))  # a run, one that waits, and no room
        self.assertEqual(meanwhile(failed, (60, None), gate.set), ["Busy"] * 2)

    def test_what_is_wrong_is_refused_at_once(self):
        net = load("8 x 16")
        for error, x in ((TypeError, buffer((16,), "fp64")), (TypeError, buffer((2, 15))),
                         (strata.Error, buffer((1, 16))[:0]), (TypeError, buffer((1, 1, 16))),
                         (TypeError, 3)):
            with self.subTest(x=x), self.assertRaises(error):
                net.submit(x)
        with self.assertRaisesRegex(ValueError, "runs already"):
            net.batcher()
        mixes = strata.load(text=relu("8 x 4").replace("Activation\nkind = relu",
                                                       "Softmax\naxis = 0"))
        with self.assertRaisesRegex(strata.Unsupported, "works along the batch"):
            mixes.submit(buffer((4,)))


if __name__ == "__main__":
    unittest.main()
