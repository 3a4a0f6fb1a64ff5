# SPDX-License-Identifier: Apache-2.0
"""The two programs of tests/apps/two_vms.py: each works without end in a guest, counts what it has done, and is compared
with what the same program computes on the host's CPU."""
import re
import shlex

from apps.shared_roots import SID, TORCH

from .application import Failed
from .stand_ins import without_cudnn

_COMPARED_SECONDS = 300
_BEGUN = 4  # units: after the first its kernels are still being loaded
_MOST_LOSS = 1e-4  # as a part of the first loss: what rounding in another order makes of so many steps


class Program:
    """One in its guest. Subclasses say what it is: title, root, vram, memory_mib, what (it counts), slow_to_start, and how many
    copies of it run, so that one has work for the GPU while another waits for the rest of the machine."""
    copies = 1

    def __init__(self, place, environment):
        self._place, self._environment, self._started = place, environment, []

    def start(self, seconds):
        """Returns when all copies are at work."""
        self._started = [self._place.start(self.command(gpu=True), self._environment) for _ in range(self.copies)]
        for copy in self._started:
            if not copy.wait(seconds, lambda said: self.count(said) >= _BEGUN):
                raise Failed(f"{self.title} does not get to work: {self.last_words()}")

    @classmethod
    def prepare(cls, direct):
        """Makes what the program needs in /data, with commands in its root on this host. The environment it runs in."""
        raise NotImplementedError

    @staticmethod
    def count(said):
        """How much it has done, of what it has said."""
        raise NotImplementedError

    def units(self):
        return sum(self.count(copy.said()) for copy in self._started)

    def ended(self):
        return any(copy.code is not None for copy in self._started)

    def last_words(self):
        return "\n".join(copy.text(stream)[-600:] for copy in self._started for stream in (1, 2))

    def stop(self):
        for copy in self._started:
            copy.stop()


class Tokens(Program):
    """Every token of the model is a byte. Two conversations at a time."""
    copies = 2
    title, what, root, vram, memory_mib, slow_to_start = "llama.cpp", "tokens", SID, "2GiB", 1536, False
    _CONTEXT = 4096
    _MODEL = ("F32", "1024", "2", _CONTEXT)  # wide: a token is much work for the GPU and little for the guest
    _PROMPT = "hello world"
    _ECHO = "\u2581hello\u2581world".encode()  # what it says first
    _MOST = _CONTEXT - 32  # tokens

    @classmethod
    def prepare(cls, direct):
        direct.must(["python3", "/opt/inside/llama_model.py", "/data/model.gguf", *cls._MODEL], timeout=60, gpu=False)
        return {}

    @classmethod
    def command(cls, gpu, tokens=_MOST):
        where = ["-ngl", "99"] if gpu else ["--device", "none"]
        return ["llama-completion", "-m", "/data/model.gguf", *where, "-c", cls._CONTEXT, "--ignore-eos", "--temp", "0", "-n", tokens,
                "-no-cnv", "-p", cls._PROMPT]

    @classmethod
    def count(cls, said):
        return max(0, len(said) - len(cls._ECHO))

    def compared(self, direct):
        seen = [copy.said() for copy in self._started]
        # Some more, because the few tokens that stand for no byte say nothing.
        tokens = max(map(self.count, seen)) * 5 // 4 + 64
        generate = shlex.join(str(word) for word in self.command(gpu=False, tokens=tokens))
        direct.must(["sh", "-c", f"{generate} > expected"], timeout=_COMPARED_SECONDS, gpu=False)
        expected = direct.read("expected")
        for said in seen:
            if not said or not expected.startswith(said):
                raise Failed(f"llama.cpp generated {said!r}, the CPU says {expected!r}")
        return f"all {self.units()} tokens are the CPU's"


class Training(Program):
    title, what, root, vram, memory_mib, slow_to_start = "PyTorch", "steps", TORCH, "4GiB", 4096, True
    _STEP = re.compile(rb"^STEP \d+ (\S+)\n", re.MULTILINE)
    _ENDLESS = 1000000

    @classmethod
    def prepare(cls, direct):
        return without_cudnn(direct)

    @classmethod
    def command(cls, gpu, steps=_ENDLESS):
        return ["python3", "/opt/inside/torch_training.py", "cuda" if gpu else "cpu", steps]

    @classmethod
    def losses(cls, said):
        return [float(word) for word in cls._STEP.findall(said)]

    @classmethod
    def count(cls, said):
        return len(cls.losses(said))

    def compared(self, direct):
        seen = self.losses(self._started[0].said())
        ran = direct.must(self.command(gpu=False, steps=len(seen)), timeout=_COMPARED_SECONDS, gpu=False,
                          environment={"LD_LIBRARY_PATH": "/opt/vgpu:/data"})
        expected = self.losses(ran.out.encode())
        apart = [abs(one - other) / expected[0] for one, other in zip(seen, expected, strict=True)]
        if not all(each <= _MOST_LOSS for each in apart):  # also where one is no number
            raise Failed(f"PyTorch's losses differ from the CPU's by up to {max(apart):.1e}: {seen[-5:]}, the CPU's {expected[-5:]}")
        return f"{len(seen)} steps, loss {seen[0]:.3f} to {seen[-1]:.3f}, within {max(apart):.0e} of the CPU's"


PROGRAMS = {"tokens": Tokens, "training": Training}
