#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replay program runs every input of an archive that corpus.py wrote, and refuses a damaged one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def run(*words):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


class ArchivesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.archive = self.directory / "corpus.tar"

    def add(self, inputs, *options):
        folder = self.directory / "inputs"
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
        done = run(sys.executable, "-B", HERE / "corpus.py", *options, self.archive, folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def replay(self):
        return run(REPLAY, self.archive)

    def test_each_input_runs_whatever_its_size(self):
        self.add({"empty": b"", "one": b"x", "block": b"y" * 512, "more": b"z" * 513})
        done = self.replay()
        self.assertEqual((done.returncode, done.stdout), (0, "4 inputs\n"), done.stderr)

    def test_inputs_are_added_or_replace_the_old_ones(self):
        self.add({"one": b"x"})
        self.add({"two": b"y"})
        self.assertEqual(self.replay().stdout, "2 inputs\n")
        self.add({"three": b"z"}, "--only")
        self.assertEqual(self.replay().stdout, "1 inputs\n")

    def test_the_same_inputs_make_the_same_archive(self):
        self.add({"one": b"x", "two": b"y"})
        first = self.archive.read_bytes()
        self.add({"two": b"y", "one": b"x"}, "--only")
        self.assertEqual(self.archive.read_bytes(), first)

    def test_a_damaged_archive_is_refused(self):
        self.add({"one": b"x" * 600})
        whole = self.archive.read_bytes()
        for damaged in (whole[:1000], whole[:512], whole[:3] + b"\0" + whole[4:124] + b"9" + whole[125:], b"", b"no archive" * 100):
            self.archive.write_bytes(damaged)
            done = self.replay()
            self.assertEqual(done.returncode, 1, damaged[:20])
            self.assertIn("is not a whole archive", done.stderr)


if __name__ == "__main__":
    REPLAY = sys.argv.pop(1)
    unittest.main()
