# SPDX-License-Identifier: Apache-2.0
"""For scripts that make many named checks in one process; tests/apps/applib/inside.py reads what they print."""
import sys
import time
import traceback

_TABLE = {}


class Skip(Exception):
    """A check that cannot be made; the text says why."""


def check(function):
    """Decorates a check. It is named like the function, passes unless it raises, and says what it returns."""
    _TABLE[function.__name__] = function
    return function


def add(name, function):
    _TABLE[name] = function


def _say(word, name, words=""):
    print(word, name, " ".join(str(words).split()), flush=True)


def main(prepare=lambda: None):
    """Runs the checks named on the command line in turn, until one fails; --list says their names."""
    names = sys.argv[1:]
    if names == ["--list"]:
        print(*_TABLE, sep="\n")
        return 0
    prepared = False
    for name in names:
        _say("BEGIN", name)
        print(f"BEGIN {name}", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            if not prepared:
                prepare()
                prepared = True
            words = _TABLE[name]() or ""
        except Skip as why:
            _say("SKIP", name, why)
            continue
        except BaseException as error:
            traceback.print_exc()
            _say("FAIL", name, f"{type(error).__name__}: {error}"[:400])
            return 1
        _say("PASS", name, f"{time.monotonic() - start:.2f} s {words}")
    return 0
