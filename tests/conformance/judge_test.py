#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/conformance/run.py says of a program's exit status and words; the lists are well formed."""
import sys
import unittest

sys.dont_write_bytecode = True
import run  # noqa: E402


class Judge(unittest.TestCase):
    CASES = [
        (0, "Test passed", "", "pass", ""),
        (0, "0 mismatches", "", "pass", ""),
        (0, "Test FAILED", "", "fail", "wrong result: Test FAILED"),
        (0, "PASS", "vgpud: kernel k, PTX line 7: load of 4 bytes", "fail", "kernel k, PTX line 7: load of 4 bytes"),
        (0, "done", "vgpud: cuFoo is not supported\nvgpud: cuFoo answered CUDA_ERROR_NOT_SUPPORTED 1 times", "pass", ""),
        (1, "", "vgpud: cuFoo is not supported\nvgpud: cuBar is not supported", "unsupported", "cuFoo"),
        (1, "", "vgpud: PTX line 5: no such instruction, or not one that the soft GPU has: `tex.2d`", "unsupported",
         "PTX line 5: no such instruction, or not one that the soft GPU has: `tex.2d`"),
        (2, "Waiving execution", "", "unsupported", "Waiving execution"),
        (2, "", "", "fail", "exit status 2"),
        (-11, "", "", "fail", "signal 11"),
        (None, "", "", "fail", "time limit"),
        (1, 'CUDA error at a.cu:3 code=2(x) "cudaMalloc"', "", "fail", 'CUDA error at a.cu:3 code=2(x) "cudaMalloc"'),
    ]

    def test_reports_of_several_executors_are_added_up(self):
        line = "vgpud-exec[drill]: info: preempt drill: every=7 cuts={} instructions={} copied={} printed=1 account={}\n"
        log = line.format(2, 14, 100, "ffffffffffffffff") + "something else\n" + line.format(1, 8, 50, "0" * 15 + "3")
        self.assertEqual(run.add_up(log), {"cuts": 3, "instructions": 22, "copied": 150, "printed": 2, "account": 2})

    def test_cases(self):
        for status, output, errors, verdict, reason in self.CASES:
            with self.subTest(status=status, output=output, errors=errors):
                self.assertEqual((verdict, reason), run.judge(status, output, errors))

    def test_lists(self):
        for name, count in (("cuda-samples.txt", 46), ("hecbench.txt", 44)):
            programs = run.read_list(run.HERE / name)
            self.assertEqual(count, len({program for program, _, _ in programs}))
            self.assertTrue(all(limit > 0 for _, limit, _ in programs))


if __name__ == "__main__":
    unittest.main()
