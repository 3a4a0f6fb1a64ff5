#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""VFs get more and less memory while programs use them: no program sees an error, each sees at once what its VF has and can take all
of it, and less than programs use is refused with the figure.

One program of a VF takes all that its VF may have after each change; two compute without a rest, one of them on another VF. With
--kills vgpud is killed (SIGKILL) at random moments of changes and started again: then programs have what the VF's definition says.

usage: resizes.py [RESIZES] [--kills N] [--seed N]    RESIZES: 100; kills: 0
"""
import argparse
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

import bed

sys.path.insert(0, str(bed.REPO / "tests" / "vm"))

import harness  # noqa: E402
from vgpuguest import direct, process  # noqa: E402
from vgpuguest.paths import ToolError  # noqa: E402

MIB = 1 << 20
GPU = 1024
LEAST_VRAM, MOST_VRAM = 64, 512
LEAST_HOST, MOST_HOST = 96, 256
# What the other programs of the VF have of it, and what an executor keeps for itself.
OTHERS_VRAM, OTHERS_HOST = 16, 64


def must(condition, what):
    if not condition:
        raise AssertionError(what)


class Program:
    """resized.py on a VF."""

    def __init__(self, vf):
        self.child = direct.start(vf, [*direct.python(), str(pathlib.Path(__file__).with_name("resized.py"))], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

    def do(self, word, size=None):
        print(word, *([] if size is None else [size]), file=self.child.stdin, flush=True)
        line = self.child.stdout.readline()
        answer = json.loads(line) if line else f"it ended with {self.child.wait(10)}"
        must(isinstance(answer, list), f"the program can {word} {(size or 0) // MIB} MiB: {answer}")
        return answer

    def finish(self):
        self.child.stdin.close()
        harness.check(self.child.wait(60) == 0, "the program ends without an error")


def resize(vgpud, name, vram=None, host=None):
    body = {field: size * MIB for field, size in (("vram_bytes", vram), ("host_memory_bytes", host)) if size is not None}
    return vgpud.request("PATCH", f"/v1/vfs/{name}", body)


def resize_soon(vgpud, name, vram, host):
    """What programs have just freed is on its way back."""
    end = time.monotonic() + 10
    while True:
        try:
            return resize(vgpud, name, vram, host)
        except ToolError as refused:
            if "its programs use" not in str(refused) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def refusal(vgpud, name, **sizes):
    try:
        resize(vgpud, name, **sizes)
    except ToolError as refused:
        return str(refused)
    raise AssertionError(f"{name} may have {sizes}")


def check_has(program, vram, what):
    free, total = program.do("info")
    must(total == vram * MIB and free <= total, f"{what}: programs see {vram} MiB, and {free / MIB:.0f} free, not {total / MIB}")


def check_refused(vgpud, program, vram):
    """While a program holds much, the VF keeps what it has."""
    held = vram // 2
    program.do("hold", held * MIB)
    why = refusal(vgpud, "a", vram=held - 8)
    must("its programs use" in why and "of its memory" in why and "vram_bytes" in why, f"less than that is refused: {why}")
    check_has(program, vram, "after a refusal")
    program.do("drop")


def check_promises(vgpud):
    """Through this door no more is promised than the GPU has, as through create."""
    for sizes in ({"vram": GPU}, {"vram": GPU - 128 + 1}):
        why = refusal(vgpud, "a", **sizes)
        harness.check("of the 1GiB of the GPU" in why, f"more than the GPU has is refused: {why}")
    try:
        vgpud.request("PATCH", "/v1/settings", {"vfs": {"a": {"vram_bytes": 600 * MIB}, "b": {"vram_bytes": 600 * MIB}}})
        raise AssertionError("two VFs may have more than the GPU together")
    except ToolError as refused:
        harness.check("of the 1GiB of the GPU" in str(refused), f"so is more of both together: {refused}")
    vgpud.request("PATCH", "/v1/settings", {"vfs": {"a": {"vram_bytes": 896 * MIB}}})
    moved = vgpud.request("PATCH", "/v1/settings", {"vfs": {"a": {"vram_bytes": 128 * MIB}, "b": {"vram_bytes": 896 * MIB, "weight": 200}}})
    harness.check(len(moved["changes"]) >= 3, f"what one gives another may have in the same change: {moved}")
    vgpud.request("PATCH", "/v1/settings", {"vfs": {"b": {"vram_bytes": 128 * MIB, "weight": 100}}})


def check_resizes(vgpud, program, count, chance):
    for n in range(count):
        vram, host = chance.randrange(LEAST_VRAM, MOST_VRAM + 1), chance.randrange(LEAST_HOST, MOST_HOST + 1)
        changed = resize_soon(vgpud, "a", vram, host)["vf"]
        must(changed["vram_bytes"] == vram * MIB and changed["host_memory_bytes"] == host * MIB, f"resize {n} is done")
        check_has(program, vram, f"resize {n}")
        program.do("fill", (vram - OTHERS_VRAM) * MIB)
        program.do("pin", (host - OTHERS_HOST) * MIB)
        if n % 10 == 0:
            check_refused(vgpud, program, vram)
    print(f"{count} resizes", flush=True)


def check_kills(vgpud, program, kills, chance):
    """Whatever vgpud was doing, what is written down holds afterwards."""
    for n in range(kills):
        before = vgpud.show("a")["vram_bytes"] // MIB
        wanted = chance.randrange(LEAST_VRAM, MOST_VRAM + 1)
        changer = threading.Thread(target=lambda size=wanted: try_to_resize(vgpud, size))
        changer.start()
        time.sleep(chance.uniform(0, 0.02))  # which moment it is decides nothing
        vgpud.kill()
        changer.join()
        vgpud.start()
        now = vgpud.show("a")["vram_bytes"] // MIB
        must(now in (before, wanted), f"kill {n}: the VF has {before} or {wanted} MiB, not {now}")
        bed.wait_until(lambda size=now: program.do("info")[1] == size * MIB, f"kill {n}: programs have {now} MiB")
        program.do("fill", (now - OTHERS_VRAM) * MIB)
    if kills:
        print(f"{kills} kills", flush=True)


def try_to_resize(vgpud, vram):
    try:
        resize(vgpud, "a", vram)
    except (ToolError, OSError):
        pass  # vgpud was killed


@contextlib.contextmanager
def told(vgpud):
    """A failure shows vgpud's log."""
    try:
        yield
    except AssertionError as failed:
        failed.add_note(f"vgpud's log:\n{process.tail(vgpud.log)}")
        raise


def run(count, kills, chance):
    with bed.supervised(["--soft-gpu-vram", f"{GPU}MiB"]) as vgpud, told(vgpud):
        for name in ("a", "b"):
            vgpud.create_kept(name, vram="128MiB", **{"host-memory": "128MiB"})
        workers = [bed.Worker(vgpud.show(name)) for name in ("a", "b")]
        for worker in workers:
            worker.wait_until_it_works()
        program = Program(vgpud.show("a"))
        check_has(program, 128, "at first")
        check_promises(vgpud)
        check_resizes(vgpud, program, count, chance)
        check_kills(vgpud, program, kills, chance)
        resize_soon(vgpud, "a", 128, 128)
        check_has(program, 128, "at last")
        program.finish()
        for worker in workers:
            status, said = worker.finish()
            harness.check(status == 0 and json.loads(said)["rounds"] > 0, f"a program that computed all the time has no error: {status} {said[:60]}")
        harness.check("broke the link" not in vgpud.text(), "and every process kept to the rules")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("resizes", nargs="?", type=int, default=100)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    run(options.resizes, options.kills, random.Random(options.seed))


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
