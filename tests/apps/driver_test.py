#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the driver makes of applications: their table, and the verdicts of scripts that die in the middle."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [_HERE, os.path.join(_HERE, "..", "..", "tools", "lib")]
import apps  # noqa: E402
from applib.application import Failed, Skipped  # noqa: E402
from applib.inside import Script  # noqa: E402
from applib.place import Place, Ran  # noqa: E402
from applib.together import Tokens, Training  # noqa: E402


class Scripted(Place):
    """Each command answers with the next text; a text of None is a process that did not end."""

    def __init__(self, *texts):
        super().__init__("/nowhere", lambda: 0.0)
        self._texts = list(texts)
        self.commands = []

    def _run(self, argv, timeout, environment, gpu):
        self.commands.append(argv)
        text = self._texts.pop(0)
        return Ran(None if text.endswith("…") else 0 if text.endswith("\n") else 1, text, "", 0.1)


def verdicts(script, checks):
    for check in checks:
        check.batch.want(check.name)
    answers = {}
    for check in checks:
        try:
            answers[check.name] = "PASS " + check.run()
        except Failed as failure:
            answers[check.name] = f"FAIL {failure}"
        except Skipped as why:
            answers[check.name] = f"SKIP {why}"
    return answers


class ScriptTest(unittest.TestCase):
    def run_script(self, *texts):
        self.place = Scripted(*texts)
        script = Script(self.place, "some.py", 10)
        return verdicts(script, script.checks())

    def test_one_process_answers_all(self):
        answers = self.run_script("a\nb\n", "BEGIN a\nPASS a fine\nBEGIN b\nSKIP b not here\n")
        self.assertEqual({"a": "PASS fine", "b": "SKIP not here"}, answers)
        self.assertEqual(2, len(self.place.commands))

    def test_a_process_that_dies_fails_what_it_had_begun_and_another_goes_on(self):
        answers = self.run_script("a\nb\nc\n", "BEGIN a\nPASS a x\nBEGIN b\nkilled", "BEGIN c\nPASS c y\n")
        self.assertEqual(["PASS x", "PASS y"], [answers["a"], answers["c"]])
        self.assertRegex(answers["b"], "^FAIL .*exit status 1")
        self.assertEqual(["c"], self.place.commands[2][-1:])

    def test_a_process_that_does_not_end_says_so(self):
        self.assertRegex(self.run_script("a\n", "BEGIN a\n…")["a"], "^FAIL .*its time was over")

    def test_a_script_that_says_nothing_is_not_asked_for_ever(self):
        answers = self.run_script("a\nb\n", "no such module", "no such module")
        self.assertRegex(answers["a"], "^FAIL .*no such module")
        self.assertRegex(answers["b"], "^FAIL ")


class PlaceTest(unittest.TestCase):
    def test_what_libcuda_misses_is_counted_by_process(self):
        class Missing(Place):
            def _run(self, argv, timeout, environment, gpu):
                return Ran(0, "", "vgpud: cuNone is not supported (said once; VGPU_TRACE=1 says it each time, 0 never)\n", 0.1)
        place = Missing("/nowhere", lambda: 0.0)
        place.run(["x"], 1)
        place.run(["x"], 1)
        self.assertEqual({"cuNone is not supported": 2}, place.missed)


class TogetherTest(unittest.TestCase):
    """What the two programs of the demo have done is read from what they say."""

    ECHO = "\u2581hello\u2581world".encode()

    class Cpu(Scripted):
        """Has a file with this after its command."""

        def __init__(self, file):
            super().__init__("\n")
            self._file = file

        def read(self, name):
            return self._file

    class Said:
        """A program in a guest that has said this."""

        def __init__(self, said):
            self._said = said

        def said(self, stream=1):
            return self._said

        def text(self, stream=1):
            return self._said.decode()

    def program(self, kind, *said):
        program = kind(None, {})
        program._started = [self.Said(each) for each in said]
        return program

    def test_a_token_is_a_byte_behind_the_prompt(self):
        self.assertEqual([0, 0, 3], [Tokens.count(said) for said in (b"", self.ECHO[:9], self.ECHO + b"ab\xf9")])

    def test_a_step_counts_when_its_line_is_whole(self):
        self.assertEqual([2.5, 2.25], Training.losses(b"STEP 1 2.5\nSTEP 2 2.25\nSTEP 3 2."))

    def test_tokens_are_the_begin_of_what_the_cpu_says(self):
        program = self.program(Tokens, self.ECHO + b"ab\xf9", self.ECHO + b"a")
        self.assertIn("all 4 tokens", program.compared(self.Cpu(self.ECHO + b"ab\xf9c\n")))
        with self.assertRaises(Failed):
            program.compared(self.Cpu(self.ECHO + b"ab\xf8c\n"))

    def test_losses_are_the_cpus(self):
        program = self.program(Training, b"STEP 1 2.5\nSTEP 2 2.25\n")
        self.assertIn("2 steps", program.compared(Scripted("STEP 1 2.5\nSTEP 2 2.25001\n")))
        for other in ("STEP 1 2.5\nSTEP 2 2.3\n", "STEP 1 2.5\nSTEP 2 nan\n"):
            with self.assertRaises(Failed):
                program.compared(Scripted(other))


class TableTest(unittest.TestCase):
    def test_each_application_is_called_like_its_file(self):
        for name in apps.NAMES:
            application = apps.load(name)
            self.assertEqual(name, application.name)
            self.assertIn(application.version_of, application.root.packages)

    def test_each_file_is_in_the_table(self):
        files = {name[:-3] for name in os.listdir(os.path.join(_HERE, "apps")) if name.endswith(".py")}
        self.assertEqual(set(apps.NAMES), files - {"__init__", "shared_roots"})


if __name__ == "__main__":
    unittest.main()
