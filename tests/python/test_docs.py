# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md, one after the other, beside the digits network."""
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
except ImportError:
    numpy = None
TOP = Path(__file__).parents[2]


class Page(unittest.TestCase):
    @unittest.skipUnless(numpy, "no numpy")
    def test_its_examples_run(self):
        page = (TOP / "docs" / "python.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
        self.assertGreater(len(blocks), 4)
        before, names = os.getcwd(), {}
        with tempfile.TemporaryDirectory() as folder:
            for path in (TOP / "examples" / "digits").iterdir():
                if path.is_file():
                    shutil.copy(path, folder)
            os.chdir(folder)
            try:
                for block in blocks:
                    exec(compile(block, "docs/python.md", "exec"), names)
            finally:
                os.chdir(before)
        self.assertEqual(names["prob"].shape, (4, 10, 1, 1))


if __name__ == "__main__":
    unittest.main()
