# SPDX-License-Identifier: Apache-2.0
"""llama.cpp: the tokens of tiny models, and its own test of every operation, against its CPU backend."""
import functools
import glob
import os
import re

from applib.application import Application, Check, Failed, Skipped

from .shared_roots import SID

_KINDS = ("F32", "F16", "Q8_0", "Q4_0")
_TOKENS = 16
_SUMMARY = re.compile(r"(\d+)/(\d+) tests passed")
_ENDED_WRONG = re.compile(r"\[(\w+)\].*(?:FAIL|NaN)|(CUDA error.*|.*GGML_ASSERT.*)")


def _complete(place, kind, gpu):
    where = ["-ngl", "99"] if gpu else ["--device", "none"]
    return place.must(["llama-completion", "-m", f"/data/{kind}.gguf", *where, "--temp", "0", "-n", _TOKENS, "-no-cnv",
                       "-p", "hello world"], timeout=120, gpu=gpu)


def _tokens(place, kind):
    place.must(["python3", "/opt/inside/llama_model.py", f"/data/{kind}.gguf", kind], timeout=60, gpu=False)
    expected = _complete(place, kind, gpu=False)
    before = place.gpu_seconds()
    seen = _complete(place, kind, gpu=True)
    on_gpu = place.gpu_seconds() - before
    if on_gpu <= 0:
        raise Failed("it did not use the GPU")
    if seen.out != expected.out:
        raise Failed(f"{seen.out.strip()!r}, the CPU says {expected.out.strip()!r}")
    return f"{_TOKENS} tokens as the CPU's; took {seen.seconds:.1f} s, {on_gpu:.1f} s of it on the GPU; the CPU's {expected.seconds:.1f} s"


def _tester(root):
    found = [path for path in glob.glob(f"{root}/usr/**/*test-backend-ops", recursive=True) if os.access(path, os.X_OK)]
    return "/" + os.path.relpath(found[0], root) if found else None


def _operation(place, tester, name):
    ran = place.run([tester, "test", "-b", "CUDA0", "-o", name], timeout=place.patience)
    passed = ran.out.count("\x1b[1;32mOK") or len(re.findall(r": .*\bOK\b", ran.out))
    if ran.code is None:
        failed = len(re.findall(r"\bFAIL\b", ran.out))
        if failed:
            raise Failed(f"{failed} FAIL, not ended after {place.patience} s")
        raise Skipped(f"not ended after {place.patience} s; until then {passed} OK, 0 FAIL")
    if ran.code != 0:
        lines = [line.strip()[:160] for line in (ran.out + ran.err).splitlines() if _ENDED_WRONG.search(line)]
        raise Failed(f"exit status {ran.code}, {passed} OK; {' | '.join(lines[:3]) or ran.tail()}")
    summary = _SUMMARY.search(ran.out)
    return f"{summary.group(0)}" if summary else f"{passed} OK"


def _operations(place, tester):
    listed = place.must([tester, "--list-ops"], timeout=60, gpu=False).out
    return [line.strip(" -*") for line in listed.splitlines() if re.fullmatch(r"[\s\-*]*[A-Z][A-Z0-9_]+", line)]


def checks(place):
    for kind in _KINDS:
        yield Check(f"tokens {kind}", functools.partial(_tokens, place, kind))
    tester = _tester(place.root)
    if tester is None:
        raise Skipped("the package llama.cpp-tests has no test-backend-ops")
    for name in _operations(place, tester):
        yield Check(f"op {name}", functools.partial(_operation, place, tester, name))


APPLICATION = Application(name="llama", title="llama.cpp", root=SID, version_of="llama.cpp-tools", checks=checks)
