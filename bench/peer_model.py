# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's time-slicing of the processes on one GPU, as published, in vgpud's simulator: equal turns of 1024 us (what the open kernel
module gives every channel group since Volta), one after the other, taken away by force; who has no work has no turn; no weights.
A program's own time between two kernels is the only figure that is measured: on the soft GPU, under "plain"."""
import json
import pathlib
import subprocess
import tempfile

from vgpuguest.paths import BUILD, ToolError, need

GPU = '[gpu]\nbase_slice = "1024us"\nidle_grace = "0s"\nanticipate_percent = 0\ntake_back_alone = 1\n'
ENDLESS = 'hostile = "endless"'


class Model:
    """The bench of peers.py, answered by the simulator."""

    def __init__(self, kernel_us, think_us, seconds):
        self.kernel_us, self.seconds = kernel_us, seconds
        self.honest = self._works(think_us)
        self.neighbours = {"endless": ENDLESS, "storm": 'hostile = "storm"', "sleeper": self._works(10_000, burst=20)}

    def counts(self, count):
        return [vf["served_ns"] / self.kernel_us / 1e3 / self.seconds for vf in self._play([self.honest] * count)]

    def beside(self, kind):
        return self._play([self.honest, self.neighbours[kind]])[0]["served_ns"] / self.kernel_us / 1e3 / self.seconds

    def waits(self):
        woken = self._play(['arrival = "bursty"\nwork = "10us"\nsleep = "30ms"'] + [self.honest] * 3)[0]
        return woken["wake_p50_ns"] / 1e3, woken["wake_p99_ns"] / 1e3

    def part_of_smaller(self, weights):
        del weights

    def reweight_ms(self):
        return None

    def _works(self, think_us, burst=1):
        return f'arrival = "bursty"\nwork = "{burst * self.kernel_us}us"\nsleep = "{think_us}us"\nkernel = "{self.kernel_us}us"'

    def _play(self, vfs):
        text = f'duration = "{self.seconds:.3f}s"\n{GPU}' + "".join(f'[[vf]]\nname = "p{i}"\n{vf}\n' for i, vf in enumerate(vfs))
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "workload.toml"
            path.write_text(text, encoding="ascii")
            done = subprocess.run([need(BUILD / "tools/vgpu-sim", "vgpu-sim"), path, "-o", "json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"vgpu-sim: {done.stderr}")
        return json.loads(done.stdout)["policies"][0]["vfs"]
