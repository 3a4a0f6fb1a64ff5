# SPDX-License-Identifier: Apache-2.0
"""Checks that a Python script makes inside the root, many in one process.

Such a script (inside/*.py, through inside/checks.py) prints "BEGIN name" and then "PASS name words" or "FAIL name words"
for each of the names it is given; after a FAIL it ends, because an error can stay with its CUDA context. It is started
anew for what is left. A process that dies or does not end fails the check that it had begun.
"""
import re
import time

from .application import Check, Failed, Skipped

_LIST_SECONDS = 120
_BEGIN = re.compile(r"^BEGIN (\S+)$", re.MULTILINE)
_LINE = re.compile(r"^(BEGIN|PASS|FAIL|SKIP) (\S+) ?(.*)$", re.MULTILINE)


class Script:
    """The checks of one script. It runs when the first of them is asked for, then for all that are wanted."""

    def __init__(self, place, file, seconds, python="python3", environment=None, extra=(), excuse=None):
        """`seconds`: the most that one process may take without a virtual machine. `excuse`: a pattern of what libcuda.so.1 says while a check
        runs that then fails, which makes it one that can't be made here."""
        self._place = place
        self._command = [python, f"/opt/inside/{file}", *extra]
        self._seconds = seconds
        self._environment = environment
        self._excuse = re.compile(excuse) if excuse else None
        self._wanted = []
        self._answers = {}

    def checks(self):
        """One Check for each name that the script lists."""
        listed = self._place.must([*self._command, "--list"], timeout=_LIST_SECONDS * self._place.slowness, environment=self._environment, gpu=False).out.split()
        return [Check(name, lambda name=name: self._answer(name), self) for name in listed]

    def want(self, name):
        self._wanted.append(name)

    def _answer(self, name):
        if name not in self._answers:
            self._run([other for other in self._wanted if other not in self._answers])
        verdict, words = self._answers.get(name, ("FAIL", "the script said nothing of it"))
        if verdict == "FAIL":
            raise Failed(words)
        if verdict == "SKIP":
            raise Skipped(words)
        return words

    def _run(self, names):
        start = time.monotonic()
        ran = self._place.run([*self._command, *names], timeout=self._seconds * self._place.slowness, environment=self._environment)
        begun = None
        for word, name, rest in _LINE.findall(ran.out):
            if word == "BEGIN":
                begun = name
            else:
                self._answers[name] = (word, rest)
                begun = None
        if begun is not None:
            self._answers[begun] = ("FAIL", f"after {time.monotonic() - start:.0f} s {ran.tail()}")
        elif not any(name in self._answers for name in names):
            self._answers[names[0]] = ("FAIL", ran.tail())
        if self._excuse:
            self._excuse_some(ran.err)

    def _excuse_some(self, err):
        begins = list(_BEGIN.finditer(err))
        for begin, end in zip(begins, [*(begin.start() for begin in begins[1:]), len(err)]):
            name, said = begin[1], self._excuse.search(err, begin.end(), end)
            verdict, words = self._answers.get(name, ("", ""))
            if verdict == "FAIL" and said:
                self._answers[name] = ("SKIP", f"{said[0]} ({words})")
