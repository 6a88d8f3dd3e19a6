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
                         (strata.Error, buffer((9, 16))), (TypeError, buffer((1, 1, 16))),
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
