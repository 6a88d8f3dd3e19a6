# SPDX-License-Identifier: Apache-2.0
"""Requests: futures, coroutines, and how they end."""
import asyncio
import threading
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
