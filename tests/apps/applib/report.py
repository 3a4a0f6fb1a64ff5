# SPDX-License-Identifier: Apache-2.0
"""What the driver prints."""
import time


class Report:
    """One line per check as it ends, then what libcuda said it cannot do, then the sums."""

    def __init__(self):
        self._counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}
        self._began = time.monotonic()

    def begin(self, title):
        print(f"\n{title}", flush=True)

    def add(self, name, verdict, seconds, said):
        self._counts[verdict] += 1
        print(f"  {verdict}  {name:<28} {seconds:7.1f} s  {said}".rstrip(), flush=True)

    def missed(self, lines):
        for line, times in sorted(lines.items()):
            print(f"  libcuda said: {line}" + (f" ({times} processes)" if times > 1 else ""), flush=True)

    def all(self, title, verdict, why):
        """An application none of whose checks could begin."""
        print(f"\n{title}", flush=True)
        self.add("all", verdict, 0, why)

    def end(self):
        """Prints the sums; the exit status of the run."""
        sums = ", ".join(f"{count} {verdict}" for verdict, count in self._counts.items())
        print(f"\n{sums} in {time.monotonic() - self._began:.0f} s", flush=True)
        return 1 if self._counts["FAIL"] else 0
