#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the last lines of a test run say about what failed."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

COUNT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../tools/lib/count_tests.py")


def write(path, verdicts):
    with open(path, "w") as log:
        for name, result, output in verdicts:
            log.write(json.dumps({"name": name, "result": result, "stdout": output}) + "\n")


def run(*arguments):
    done = subprocess.run([sys.executable, COUNT, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()


def counted(*verdicts, again=()):
    """(exit status, lines) for verdicts (name, result, output)."""
    with tempfile.TemporaryDirectory() as logs:
        write(os.path.join(logs, "plain.json"), verdicts)
        if again:
            write(os.path.join(logs, "plain.again.json"), again)
        return run(logs)


class CountTests(unittest.TestCase):
    def test_the_last_line_counts(self):
        status, lines = counted(("a", "OK", ""), ("b", "EXPECTEDFAIL", ""), ("c", "SKIP", "SKIP: no nvcc"))
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))
        self.assertIn("skipped  plain: c: SKIP: no nvcc", lines)

    def test_nothing_that_ran_is_a_failure(self):
        self.assertEqual(counted()[0], 1)
        self.assertEqual(counted(("a", "SKIP", "SKIP: why"))[0], 1)

    def test_a_passed_line_that_speaks_of_errors_is_not_the_reason(self):
        early = "".join(f"ok {n} - errors, not signals, FAILED or assert\n" for n in range(40))
        late = "".join(f"ok {n} fine\n" for n in range(60))
        status, lines = counted(("a", "FAIL", early + "not ok 41 - it hangs\n  # because\n" + late + "the end\n"), ("b", "OK", ""))
        said = [line[11:] for line in lines if line.startswith("         | ")]
        self.assertEqual(status, 1)
        self.assertEqual(said[:2], ["not ok 41 - it hangs", "  # because"])
        self.assertEqual(said[-1], "the end")
        self.assertLess(len(said), 40)
        self.assertEqual(lines[-1], "1 passed, 1 failed")

    def test_a_short_output_is_shown_whole(self):
        lines = counted(("a", "FAIL", "begin\nTraceback (most recent call last):\n  what\n"))[1]
        self.assertEqual([line[11:] for line in lines if "|" in line], ["begin", "Traceback (most recent call last):", "  what"])

    def test_the_second_attempt_counts_and_the_first_is_told(self):
        status, lines = counted(("a", "FAIL", "not ok 1 - lost"), ("b", "OK", ""), again=[("a", "OK", "fine")])
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))
        self.assertIn("AGAIN    plain: a failed first, and passed the second time: FAIL", lines)
        self.assertIn("         | not ok 1 - lost", lines)
        status, lines = counted(("a", "FAIL", "not ok 1 - lost"), ("b", "OK", ""), again=[("a", "TIMEOUT", "not ok 2 - gone")])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("         | not ok 2 - gone", lines)

    def test_failed_tests_are_named_by_suite(self):
        with tempfile.TemporaryDirectory() as logs:
            log = os.path.join(logs, "plain.json")
            write(log, [("vgpud:vm / a", "FAIL", ""), ("vgpud:vm / b", "OK", ""), ("vgpud:unit / c", "FAIL", ""), ("vgpud:vm / d", "SKIP", ""),
                        ("vgpud:vm / e", "TIMEOUT", "")])
            self.assertEqual(run("--failed", log, "vm"), (0, ["a", "e"]))


unittest.main()
