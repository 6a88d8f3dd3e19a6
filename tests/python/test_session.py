# SPDX-License-Identifier: Apache-2.0
"""Buffers bound once."""
import asyncio
import threading
import time
import unittest

import strata
from support import buffer, flat, load, positive


class Session(unittest.TestCase):
    def test_bound_memory_is_not_copied(self):
        net = load()
        x, y = net.pinned("x"), net.pinned("y")
        with net.session(x=x, y=y) as s:
            self.assertEqual((s["x"].address, s["y"].address), (x.address, y.address))
            for value in (3, -3, 5):
                memoryview(x).cast("B")[:] = buffer((1, 64), value=value).cast("B")
                self.assertIsNone(s.run())
                self.assertEqual(flat(y), [max(value, 0)] * 64)
            self.assertEqual(s.stats(), {"runs": 3, "copied_in": 0, "copied_out": 0})

    def test_memory_that_cannot_be_bound_is_copied_and_counted(self):
        net = load()
        room = memoryview(bytearray(64 * 4 + 256))
        at = next(i for i in range(4, 256, 4)
                  if strata_address(room) % 256 != (256 - i) % 256)
        y = room[at:at + 256].cast("f", [1, 64])
        x = buffer((1, 64))
        with net.session(x=x, y=y) as s:
            s.run()
            self.assertEqual(y.cast("B").cast("f").tolist(), positive(flat(x)))
            self.assertEqual(s.stats()["copied_out"], 256)

    def test_memory_of_its_own(self):
        with load().session() as s:
            x, y = s["x"], s["y"]
            memoryview(x).cast("B")[:] = buffer((1, 64)).cast("B")
            s.run()
            self.assertEqual(flat(y), positive(flat(x)))
            del x, y

    def test_views_keep_it_open(self):
        s = load().session()
        y = s["y"]
        with self.assertRaisesRegex(BufferError, "1 views"):
            s.close()
        del y
        s.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            s.run()
        s.close()

    def test_a_view_outlives_network_and_session(self):
        net = load()
        s = net.session(x=buffer((1, 64), value=4))
        s.run()
        view = memoryview(s["y"])
        del net, s
        self.assertEqual(flat(view), [4] * 64)

    def test_smaller_sizes_are_copied(self):
        net = load("N x 8", "[profile]\nN = 2, 4\n")
        y = strata.pinned_empty((3, 8))
        with net.session(x=buffer((3, 8)), y=y) as s:
            s.run()
        self.assertEqual(flat(y), positive(flat(buffer((3, 8)))))

    def test_a_second_thread_is_told_that_it_is_busy(self):
        session = load("1 x 4194304").session()
        busy, end = [], threading.Event()

        def work():
            while not end.is_set():
                try:
                    session.run()
                except strata.Busy as error:
                    busy.append(error.code)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        while not busy:
            time.sleep(0.001)
        end.set()
        for t in threads:
            t.join()
        self.assertEqual(set(busy), {"EBUSY"})
        session.run()

    def test_coroutines_go_on_beside_a_run(self):
        net = load("1 x 4194304")
        sessions = [net.session() for _ in range(2)]
        ran = []

        async def other():
            while len(ran) < 2:
                count[0] += 1
                await asyncio.sleep(0)

        async def one(session):
            await session.run_async()
            ran.append(session)

        async def main():
            await asyncio.gather(other(), *map(one, sessions))

        count = [0]
        asyncio.run(main())
        self.assertEqual(set(ran), set(sessions))
        self.assertGreater(count[0], 2)
        self.assertEqual([s.stats()["runs"] for s in sessions], [1, 1])
        sessions[0].close()
        with self.assertRaisesRegex(ValueError, "closed"):
            sessions[0].run_async()

    def test_what_does_not_fit_is_refused(self):
        net = load()
        for error, named in ((TypeError, {"x": buffer((1, 64), "fp64")}),
                             (strata.Error, {"x": buffer((1, 63))}),
                             (TypeError, {"y": buffer((1, 63))}),
                             (KeyError, {"z": buffer((1, 64))}),
                             (BufferError, {"y": memoryview(bytes(256)).cast("f", [1, 64])})):
            with self.subTest(named=sorted(named)), self.assertRaises(error):
                net.session(**named)


def strata_address(view):
    """Of memory, by asking a tensor library that is there: ctypes."""
    import ctypes
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


if __name__ == "__main__":
    unittest.main()
