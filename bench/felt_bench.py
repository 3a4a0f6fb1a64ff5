#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a share is worth to a program that launches a kernel and waits for it, again and again: kernels done beside neighbours with
endless kernels, as a part of weight's share of what it does alone. On direct VFs; each row measures "alone" and "beside" in turn.

usage: felt_bench.py [--rounds N] [--seconds S] [--neighbours N ...] [--kernels-us K ...] [--think-us T ...] [-- FLAGS OF VGPUD]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("VGPUD_BUILD_DIR", "build")).resolve()
PROBE = BUILD / "bench/felt_probe"


class Daemon:
    def __init__(self, flags):
        self.directory = tempfile.TemporaryDirectory(prefix="vgpu-bench-")
        os.chmod(self.directory.name, 0o755)
        ready, child = os.pipe()
        self.process = subprocess.Popen(
            [BUILD / "vgpud/vgpud", "--runtime-dir", self.directory.name, "--ready-fd", str(child), "--event-budget", "opens=0",
             *flags], pass_fds=[child], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(child)
        if not os.read(ready, 1):
            raise SystemExit("felt_bench: vgpud did not start")
        os.close(ready)

    def ctl(self, *words):
        done = subprocess.run([BUILD / "tools/vgpuctl", "--runtime-dir", self.directory.name, *words, "-o", "json"],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout) if done.stdout.strip() else {}

    @staticmethod
    def environment(vf):
        return dict(os.environ, VGPU_CHANNEL=vf["channel_socket"], LD_LIBRARY_PATH=str(BUILD / "guest-driver-shim/libcuda"))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()


def probe(vf, *words):
    return float(subprocess.run([PROBE, *map(str, words)], env=Daemon.environment(vf), capture_output=True, text=True,
                                check=True).stdout)


def beside(daemon, vf, neighbours, words):
    """The count of the probe and the part of the GPU that the neighbours had meanwhile."""
    endless = [subprocess.Popen([BUILD / "tests/cuda/vgpu-launch", "endless"], env=Daemon.environment(n),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in neighbours]
    names = {n["name"] for n in neighbours}
    received = lambda stats: {v["name"]: v["received_ns"] for v in stats["vfs"]}
    try:
        while any(v["slices"] < 20 for v in daemon.ctl("stats")["vfs"] if v["name"] in names):
            pass
        before = daemon.ctl("stats")
        count = probe(vf, *words)
        after = daemon.ctl("stats")
    finally:
        for program in endless:
            program.kill()
            program.wait()
    had = {name: ns - received(before)[name] for name, ns in received(after).items()}
    return count, sum(had[name] for name in names) / (after["now_ns"] - before["now_ns"])


def main(arguments):
    own, flags = (arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:]) if "--" in arguments else (arguments, [])
    parser = argparse.ArgumentParser(prog="felt_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[1, 3, 7])
    parser.add_argument("--kernels-us", type=int, nargs="+", default=[20, 100, 500, 2000])
    parser.add_argument("--think-us", type=int, nargs="+", default=[0, 50])
    options = parser.parse_args(own)
    daemon = Daemon(flags)
    try:
        vf = daemon.ctl("create", "felt", "--vram", "64MiB")
        others = [daemon.ctl("create", f"n{i}", "--vram", "64MiB") for i in range(max(options.neighbours))]
        loops = probe(vf, "calibrate")
        print(f"{loops:.1f} loops of a kernel in a microsecond; each round: part of the share's worth (neighbours' part of the GPU)")
        print(f"{'kernel us':>9} {'think us':>8} {'neighbours':>10} {'alone/s':>8} {'median':>7}  rounds")
        for kernel in options.kernels_us:
            for think in options.think_us:
                words = (max(1, round(loops * kernel)), think, options.seconds)
                for count in options.neighbours:
                    alone, felt, theirs = [], [], []
                    for _ in range(options.rounds):
                        alone.append(probe(vf, *words))
                        done, part = beside(daemon, vf, others[:count], words)
                        felt.append(done / (alone[-1] / (count + 1)))
                        theirs.append(part)
                    print(f"{kernel:>9} {think:>8} {count:>10} {statistics.median(alone) / options.seconds:>8.0f} "
                          f"{statistics.median(felt):>7.2f}  "
                          + " ".join(f"{f:.2f} ({t:.2f})" for f, t in zip(felt, theirs)), flush=True)
    finally:
        daemon.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
