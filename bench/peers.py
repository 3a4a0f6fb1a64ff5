#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same programs on the same soft GPU, shared in the ways that people use today:

  vgpud      a VF for each program, policy strict, slices of 2 ms
  seconds    the same with slices of a second: turns as long as nvshare's
  plain      all programs in one VF: what CUDA does with several processes on one GPU that nobody schedules
  nvshare    the same, each program with nvshare's library and its scheduler beside them (--nvshare: a checkout with its libraries built,
             `make -C src libnvshare.so nvshare-scheduler nvsharectl`; its socket is in /var/run/nvshare, so this needs root)
  hami       the same, each program with HAMi-core's library, its limit of the GPU's cores its part in percent, alone none (--hami: the
             folder with its libvgpu.so; it reads the use of the GPU from our libnvidia-ml)
  nvidia   NVIDIA's time-slicing, a model in the simulator (peer_model.py)

What is not there is left out, and said. Measured, by what the programs themselves count:

  alone        kernels of 500 us per second of a program that waits for each, alone, over the same under "plain"
  Jain         four such programs; worst: the worst one's part of a quarter
  25/75, 10/90 the smaller part when two are given these weights; - where there are none
  endless, storm, sleeper   what such a program gets beside that neighbour, as a part of half of what it does alone; 0: it did not begin; -: the
               neighbour did not
  p50, p99     us from a launch after 30 ms of sleep to the kernel's first instruction, beside three honest programs
  re-weight    ms from asking for other weights until they are in force

usage: peers.py [--seconds S] [--only SYSTEM ...] [--nvshare DIRECTORY] [--hami DIRECTORY]    environment: VGPUD_BUILD_DIR
"""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from felt_programs import begun, command, rates  # noqa: E402
from peer_model import Model  # noqa: E402
from vgpuguest import daemon, process  # noqa: E402
from vgpuguest.paths import BUILD, ToolError, cuda_command  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

WAKE = str(BUILD / "bench/wake_probe")
KERNEL_US = 500


class Vgpud:
    """A VF for each program."""
    weights = True
    slice_us = 2000

    @contextlib.contextmanager
    def bed(self, count, weights=None):
        """[run(argv) of each program's place]."""
        vfs = [(f"p{i}", {"weight": weight}) for i, weight in enumerate(weights or [100] * count)]
        with daemon.private_daemon(vfs, ["--event-budget", "opens=0", "--base-slice-us", str(self.slice_us)]) as vgpud:
            self.vgpud = vgpud
            shown = [vgpud.show(name) for name, _ in vfs]
            yield [lambda argv, vf=vf: DirectProgram(vf, argv) for vf in shown]

    def reweight_ms(self):
        with self.bed(2) as places:
            programs = [run(cuda_command("endless")) for run in places]
            try:
                for program in programs:
                    program.wait_for_line("endless: started", 20)
                begin = time.monotonic()
                self.vgpud.set("p0", weight=50)
                return (time.monotonic() - begin) * 1000
            finally:
                stop(programs)


class Seconds(Vgpud):
    slice_us = 1_000_000


class Plain:
    """One VF for all."""
    weights = False
    prefix = []

    @contextlib.contextmanager
    def bed(self, count, weights=None):
        del weights
        with daemon.private_daemon([("all", {})], ["--event-budget", "opens=0"]) as vgpud:
            vf = vgpud.show("all")
            yield [lambda argv: DirectProgram(vf, [*self.prefix, *argv])] * count

    def reweight_ms(self):
        return None


class Nvshare(Plain):
    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        library = self.directory / "src/libnvshare.so"
        if not library.exists():
            raise ToolError(f"{library} is missing: build it there with make -C src libnvshare.so nvshare-scheduler nvsharectl")
        self.prefix = ["env", f"LD_PRELOAD={library}"]

    @contextlib.contextmanager
    def bed(self, count, weights=None):
        with subprocess.Popen([self.directory / "src/nvshare-scheduler"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as scheduler:
            try:
                deadline = time.monotonic() + 10
                while subprocess.run([self.directory / "src/nvsharectl", "-T", "1"], capture_output=True, check=False).returncode != 0:
                    if scheduler.poll() is not None or time.monotonic() > deadline:
                        raise ToolError("nvshare's scheduler does not answer: it needs root and /var/run/nvshare")
                with super().bed(count, weights) as places:
                    yield places
            finally:
                scheduler.kill()


class Hami(Plain):
    """A container for each program: what its library shares with others is a file that only this program has."""
    weights = True

    def __init__(self, directory):
        self.library = pathlib.Path(directory).resolve() / "libvgpu.so"
        if not self.library.exists():
            raise ToolError(f"{self.library} is missing: build HAMi-core there (docs/comparison.md)")

    @contextlib.contextmanager
    def bed(self, count, weights=None):
        os.makedirs("/tmp/vgpulock", exist_ok=True)  # where its library has its lock
        parts = [100 * weight // sum(weights) for weight in weights] if weights else [100 // count] * count
        with process.scratch_dir("vgpu-hami-") as scratch, super().bed(count) as places:
            def limited(index):
                words = ["env", f"LD_PRELOAD={self.library}", f"CUDA_REDIRECT={self.library}", f"CUDA_DEVICE_SM_LIMIT={parts[index]}", "LIBCUDA_LOG_LEVEL=0",
                         f"CUDA_DEVICE_MEMORY_SHARED_CACHE={scratch}/{index}", "GPU_CORE_UTILIZATION_POLICY=FORCE"]
                return lambda argv: places[index]([*words, *argv])
            yield [limited(index) for index in range(count)]


def stop(programs):
    for program in programs:
        program.stop()


class Bench:
    def __init__(self, system, seconds):
        self.system, self.seconds = system, seconds
        self.honest, self.begins = command(KERNEL_US)
        self.neighbours = {
            "endless": command(None),
            "storm": ([*cuda_command("meter"), "--seconds", "3600", "--steps", "1"], "METER"),
            "sleeper": command(KERNEL_US, 10_000, 20),
        }
        self.patience = 20 + 5 * seconds

    def counts(self, count, weights=None):
        """What each of `count` honest programs gets done in a second."""
        with self.system.bed(count, weights) as places:
            programs = [run(self.honest) for run in places]
            try:
                found = rates(programs, self.begins, self.seconds, self.patience)
            finally:
                stop(programs)
        if found is None:
            raise ToolError(f"not all of {count} programs began within {self.patience:.0f} s")
        return found

    def beside(self, kind):
        """The same of one beside a neighbour; 0 if it never begins, None if the neighbour does not."""
        argv, begins = self.neighbours[kind]
        with self.system.bed(2) as (one, other):
            programs = [other(argv)]
            try:
                if not begun(programs, begins, 30):
                    return None
                programs.append(one(self.honest))
                return (rates(programs[1:], self.begins, self.seconds, self.patience) or [0.0])[0]
            finally:
                stop(programs)

    def waits(self):
        """(p50, p99) in us."""
        with self.system.bed(4) as places:
            programs = [run(self.honest) for run in places[1:]]
            try:
                for program in programs:
                    program.wait_for_line(self.begins, self.patience)
                programs.append(places[0]([WAKE, "100", "30000"]))
                if programs[-1].wait(600) != 0:
                    raise ToolError(f"wake_probe failed\n{programs[-1].text()}")
                return [float(word) for word in programs[-1].lines[-1][1].split()[:2]]
            finally:
                stop(programs)

    def reweight_ms(self):
        return self.system.reweight_ms()

    def part_of_smaller(self, weights):
        if not self.system.weights:
            return None
        small, large = self.counts(2, weights)
        return small / (small + large)


def row(name, bench, plain_alone):
    alone = bench.counts(1)[0]
    four = bench.counts(4)
    jain = sum(four) ** 2 / (4 * sum(count * count for count in four))
    figures = [alone / plain_alone, jain, min(four) * 4 / sum(four), bench.part_of_smaller([25, 75]), bench.part_of_smaller([10, 90]),
               *(None if beside is None else beside / (alone / 2) for beside in map(bench.beside, bench.neighbours))]
    waits = bench.waits()
    reweight = bench.reweight_ms()
    print(f"{name:>8} " + " ".join(f"{'-' if figure is None else f'{figure:.3f}':>7}" for figure in figures)
          + f" {waits[0]:>8.0f} {waits[1]:>8.0f} {'-' if reweight is None else f'{reweight:.0f}':>9}", flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["plain", "vgpud", "seconds", "nvidia", "nvshare", "hami"]
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--nvshare")
    parser.add_argument("--hami")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    options = parser.parse_args(arguments)
    for name in ("nvshare", "hami"):
        if name in options.only and not getattr(options, name):
            print(f"{name} is left out: --{name} names no checkout")
            options.only.remove(name)
    plain_alone = Bench(Plain(), options.seconds).counts(1)[0]
    print(f"plain: {plain_alone:.0f} kernels of {KERNEL_US} us in a second alone; {options.seconds:g} s for each figure")
    print(f"{'':>8} " + " ".join(f"{head:>7}" for head in ("alone", "Jain", "worst", "25/75", "10/90", "endless", "storm", "sleeper"))
          + f" {'p50 us':>8} {'p99 us':>8} {'re-weight':>9}")
    for name in options.only:
        if name == "nvidia":
            bench = Model(KERNEL_US, max(1, round(1e6 / plain_alone - KERNEL_US)), options.seconds)
        else:
            bench = Bench({"plain": Plain, "vgpud": Vgpud, "seconds": Seconds, "nvshare": lambda: Nvshare(options.nvshare),
                           "hami": lambda: Hami(options.hami)}[name](), options.seconds)
        row(name, bench, plain_alone)
    return 0


process.run_tool("peers", main)
