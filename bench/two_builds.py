# SPDX-License-Identifier: Apache-2.0
"""Two builds measured in turn, round by round: what a change costs or wins."""
import json
import os
import pathlib
import statistics
import subprocess
import tempfile


class Daemon:
    """A vgpud of one of the builds."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.directory = tempfile.TemporaryDirectory(prefix="vgpu-bench-")
        os.chmod(self.directory.name, 0o755)
        ready, child = os.pipe()
        self.process = subprocess.Popen(
            [self.build / "vgpud/vgpud", "--runtime-dir", self.directory.name, "--ready-fd", str(child),
             "--event-budget", "opens=0"], pass_fds=[child], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(child)
        os.read(ready, 1)
        os.close(ready)

    def ctl(self, *words):
        done = subprocess.run([self.build / "tools/vgpuctl", "--runtime-dir", self.directory.name, "--timeout", "10", *words,
                               "-o", "json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def environment(self, vf):
        return dict(os.environ, VGPU_CHANNEL=vf["channel_socket"],
                    LD_LIBRARY_PATH=str(self.build / "guest-driver-shim/libcuda"))

    def run(self, vf, *command):
        return subprocess.run(command, env=self.environment(vf), capture_output=True, text=True, check=True).stdout

    def start(self, vf, *command):
        return subprocess.Popen(command, env=self.environment(vf), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()


def compare(before, after, rounds, measure):
    """Prints what measure(daemon), a dictionary of figures, says of two build directories: ratios are of the same round."""
    figures = []
    for _ in range(rounds):
        pair = []
        for build in (before, after):
            daemon = Daemon(build)
            try:
                pair.append(measure(daemon))
            finally:
                daemon.stop()
        figures.append(pair)
    print(f"{'':22}{'before':>10}{'after':>10}{'ratio':>8}  ratio in each round")
    for name in figures[0][0]:
        ratios = [after[name] / before[name] if before[name] else float("nan") for before, after in figures]
        print(f"{name:22}{statistics.median(pair[0][name] for pair in figures):10.2f}"
              f"{statistics.median(pair[1][name] for pair in figures):10.2f}{statistics.median(ratios):8.2f}  "
              + " ".join(f"{ratio:.2f}" for ratio in ratios))
