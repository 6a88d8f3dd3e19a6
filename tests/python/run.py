# SPDX-License-Identifier: Apache-2.0
"""TAP of the unittest files beside this one.

    run.py [MODULE...]
"""
import sys
import traceback
import unittest
from pathlib import Path

HERE = Path(__file__).parent


class Tap(unittest.TestResult):
    number = 0

    def line(self, test, verdict, note=""):
        Tap.number += 1
        name = test.id().split(".", 1)[-1].replace("_", " ")
        print(f"{verdict} {Tap.number} - {name}{note}", flush=True)

    def explain(self, error):
        for line in "".join(traceback.format_exception(*error)).splitlines():
            print("#", line)

    def addSuccess(self, test):
        self.line(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line(test, "ok", f" # SKIP {reason}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.line(test, "not ok")
        self.explain(error)

    def addError(self, test, error):
        super().addError(test, error)
        self.line(test, "not ok")
        self.explain(error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.line(subtest, "not ok")
            self.explain(error)


def main():
    sys.path.insert(0, str(HERE))
    names = sys.argv[1:] or sorted(p.stem for p in HERE.glob("test_*.py"))
    result = Tap()
    unittest.defaultTestLoader.loadTestsFromNames(names).run(result)
    print(f"1..{Tap.number}")
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
