#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several GPUs in one vgpud: where new VFs go and why, what is said and changed of each GPU, who waits for room, and that
VFs stay on their GPU when vgpud is started again."""
import json
import pathlib
import subprocess

import harness
from harness import check
from vgpuguest import daemon, process
from vgpuguest.paths import VGPUCTL, VGPUD, ToolError
from vgpuguest.program import DirectProgram

CONFIG = """
[daemon]
placement = "most-free-vram"
[gpu]
soft_gpu_vram = "4GiB"
base_slice_us = 2000
[gpu.one]
[gpu.two]
soft_gpu_vram = "8GiB"
soft_gpu_capability = "9.0"
base_slice_us = 4000
[gpu.three]
policy = "reserve"
numa_node = 1
"""


def refused(what, function, *words):
    try:
        answer = function()
    except ToolError as error:
        for word in words:
            check(word in str(error), f"{what}: the refusal says \"{word}\": {error}")
        return
    raise AssertionError(f"{what} is not refused: {answer}")


def ctl(vgpud, *words):
    return subprocess.run([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)


def check_placement(vgpud):
    made = vgpud.create("a", vram="1GiB")
    check(made["gpu"] == "two" and made["placed"] == "on two: most free VRAM (8GiB of 8GiB)", f"most free: {made['placed']}")
    check(vgpud.create("b", gpu="one", vram="3GiB")["placed"] == "on one: as asked for", "by name")
    check(vgpud.create("c", placement="pack", vram="1GiB")["gpu"] == "one", "pack: the fullest with room")
    check(vgpud.create("d", placement="spread", vram="64MiB")["gpu"] == "three", "spread: the one without VFs")
    made = vgpud.create("e", **{"numa-node": 1}, vram="64MiB")
    check(made["gpu"] == "three" and "at NUMA node 1" in made["placed"], f"by NUMA node: {made['placed']}")
    check(vgpud.create("f", profile="1/8", gpu="two")["vram_bytes"] == 1 << 30, "a profile is a part of that GPU")
    check(vgpud.create("g", profile="1/8", gpu="three")["vram_bytes"] == 512 << 20, "and of another one another part")
    refused("an unknown GPU", lambda: vgpud.create("x", gpu="tow"), 'no gpu "tow"', "two")
    refused("too much for all", lambda: vgpud.create("x", vram="9GiB"), "no GPU has room", "one (0B of 4GiB free, 2 VFs",
            "two (6GiB of 8GiB free", "three (")
    refused("a guarantee that only a policy has", lambda: vgpud.create("x", gpu="one", guarantee="50%"), "guarantee")
    check(vgpud.create("h", guarantee="50%", vram="64MiB")["gpu"] == "three", "it goes where the policy has guarantees")
    refused("more than may be guaranteed", lambda: vgpud.create("x", guarantee="60%", vram="64MiB"), "50% guaranteed")
    answer = ctl(vgpud, "create", "x", "--vram", "1GiB", "--dry-run").stdout
    check("x would be placed on two" in answer, f"--dry-run says where: {answer}")


def check_reports(vgpud):
    listed = ctl(vgpud, "list").stdout
    check("GPU" in listed.splitlines()[0] and " three " in listed, f"list has a column:\n{listed}")
    gpus = {gpu["name"]: gpu for gpu in vgpud.ctl("gpus")["gpus"]}
    check(list(gpus) == ["one", "three", "two"], f"all GPUs, by name: {list(gpus)}")
    check(gpus["one"]["vram_promised_bytes"] == 4 << 30 and gpus["one"]["vfs"] == 2, "with what is promised")
    check(gpus["two"]["compute_capability"] == "9.0" and gpus["two"]["base_slice_us"] == 4000, "each has its own settings")
    check(vgpud.ctl("gpu", "three")["policy"] == "reserve", "one by name")
    refused("the GPU, of three", lambda: vgpud.ctl("gpu"), "there are 3 GPUs, say which one: one, three, two")
    refused("a change of the GPU, of three", lambda: vgpud.ctl("set-gpu", "--base-slice", "1ms"), "say which one")
    stats = vgpud.ctl("stats")
    check([gpu["name"] for gpu in stats["gpus"]] == ["one", "three", "two"], "statistics of each")
    check({vf["name"]: vf["gpu"] for vf in stats["vfs"]}["b"] == "one", "and of all VFs")
    metrics = ctl(vgpud, "metrics").stdout
    for line in ('vgpud_gpu_vfs{gpu="one"} 2', 'vgpud_vf_weight{gpu="one",vf="b"} 100'):
        check(line + "\n" in metrics, f"metrics have {line}")
    with process.scratch_dir("vgpu-") as scratch:
        trace = scratch + "/trace.json"
        check("say which one" in ctl(vgpud, "trace", "-o", trace).stderr, "a trace is of one GPU")
        check(ctl(vgpud, "trace", "--gpu", "two", "-o", trace).returncode == 0, "that is named")
        check("two" in json.dumps(json.loads(pathlib.Path(trace).read_text(encoding="utf-8"))), "and says so")


def check_changes(vgpud):
    change = vgpud.ctl("set-gpu", "one", "--base-slice", "1ms")
    check(change["gpu"]["base_slice_us"] == 1000 and vgpud.ctl("gpu", "two")["base_slice_us"] == 4000, "one GPU is changed")
    both = {"gpus": {"one": {"base_slice_us": 3000}, "two": {"base_slice_us": 5000}}, "vfs": {"a": {"weight": 7}}}
    answer = vgpud.request("PATCH", "/v1/settings", both)
    check(set(answer["rounds"]) == {"one", "two"}, "several at once, each at a boundary of its own")
    bad = {"gpus": {"one": {"base_slice_us": 1000}}, "vfs": {"b": {"guarantee": 0.5}}}
    refused("half of it", lambda: vgpud.request("PATCH", "/v1/settings", bad), "policy strict has no guarantee")
    check(vgpud.ctl("gpu", "one")["base_slice_us"] == 3000, "and then nothing of it is done")
    state = ctl(vgpud, "export").stdout
    check("[gpu.one]" in state and "[gpu.three]" in state, f"export names GPUs:\n{state}")
    with process.scratch_dir("vgpu-") as scratch:
        path = pathlib.Path(scratch) / "state.toml"
        path.write_text(state, encoding="utf-8")
        check(ctl(vgpud, "assert", "--file", str(path)).returncode == 0, "it is as it is")
        path.write_text('[gpu.two]\nbase_slice_us = 6000\n[vf.new]\ngpu = "two"\nvram = "64MiB"\n', encoding="utf-8")
        check("two base_slice_us is 5ms and should be 6ms" in ctl(vgpud, "assert", "--file", str(path)).stdout, "differences name it")
        check(ctl(vgpud, "apply", "--file", str(path), "--detailed-exitcode").returncode == 7, "apply changes it")
        check(vgpud.show("new")["gpu"] == "two" and vgpud.ctl("gpu", "two")["base_slice_us"] == 6000, "and makes VFs there")
        path.write_text('[vf.new]\ngpu = "one"\n', encoding="utf-8")
        check("is on gpu two and should be on one" in ctl(vgpud, "apply", "--file", str(path)).stderr, "none is moved")
        vgpud.destroy("new")


def check_revisions(vgpud):
    """Two administrators who have seen the same VF."""
    seen = str(vgpud.show("a")["revision"])
    check(ctl(vgpud, "set", "a", "--weight", "11", "--if-revision", seen).returncode == 0, "the first one changes it")
    late = ctl(vgpud, "set", "a", "--weight", "12", "--if-revision", seen)
    check(late.returncode == 5 and "has been changed meanwhile" in late.stderr and vgpud.show("a")["weight"] == 11,
          f"the second one is told, and nothing is done: {late.stderr}")
    for words in (("pause", "a"), ("destroy", "a")):
        check(ctl(vgpud, *words, "--if-revision", seen).returncode == 5, f"{words[0]}, too")
    check(vgpud.show("a")["state"] == "ready", "it is as it was")
    seen = str(vgpud.ctl("gpu", "one")["revision"])
    check(ctl(vgpud, "set-gpu", "one", "--base-slice", "2ms", "--if-revision", seen, "--dry-run").returncode == 0, "asking changes nothing")
    check(ctl(vgpud, "set-gpu", "one", "--base-slice", "2ms", "--if-revision", seen).returncode == 0, "so it still fits")
    check(ctl(vgpud, "set-gpu", "one", "--base-slice", "3ms", "--if-revision", seen).returncode == 5, "once")
    check(str(vgpud.ctl("gpu", "two")["revision"]) != seen, "each GPU has its own")


class Waiting:
    """A client of create --queue."""

    def __init__(self, vgpud, name, *words):
        self.name = name
        self.child = subprocess.Popen([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "create", name, "--transient", "--queue", *words],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        out, err = self.child.communicate(timeout=30)
        return self.child.returncode, out + err


def check_queue(vgpud):
    large = ["--gpu", "one", "--vram", "3GiB"]
    low = Waiting(vgpud, "low", "--priority", "0", *large)
    gone = Waiting(vgpud, "gone", "--priority", "3", *large)
    high = Waiting(vgpud, "high", "--priority", "2", *large)
    never = Waiting(vgpud, "never", "--gpu", "one", "--vram", "5GiB").end()
    check(never[0] == 5 and "wants 5GiB" in never[1], f"what can never be does not wait: {never}")
    short = ctl(vgpud, "--timeout", "0.3", "create", "short", "--queue", *large)
    check(short.returncode == 6, f"--timeout ends the wait: {short.stderr}")
    harness.wait_until(lambda: vgpud.ctl("gpus")["waiting"] == 3, "three wait")
    gone.child.kill()
    gone.child.communicate()
    harness.wait_until(lambda: vgpud.ctl("gpus")["waiting"] == 2, "and one of them has gone")
    vgpud.destroy("b")
    code, said = high.end()
    check(code == 0 and "as asked for" in said, f"the highest priority of those who are still there comes first: {said}")
    check(low.child.poll() is None and vgpud.show("high")["gpu"] == "one", "the other one waits on")
    vgpud.destroy("high")
    check(low.end()[0] == 0, "until there is room for it")
    names = vgpud.names()
    check("gone" not in names and "short" not in names, f"who is gone gets nothing: {names}")


def check_that_they_stay(config):
    with process.scratch_dir("vgpu-") as state:
        flags = ["--config", config, "--state-dir", state]
        with daemon.private_daemon([], flags) as vgpud:
            vgpud.ctl("create", "kept", "--gpu", "three", "--guarantee", "25%", "--vram", "64MiB")
            uuid = vgpud.show("kept")["uuid"]
        with daemon.private_daemon([], flags) as vgpud:
            shown = vgpud.show("kept")
            check((shown["gpu"], shown["uuid"], shown["guarantee"]) == ("three", uuid, 0.25), "it is back on its GPU")
        with daemon.private_daemon([], ["--with-gpu", "one", "--with-gpu", "two", "--state-dir", state]) as vgpud:
            shown = vgpud.show("kept")
            check(shown["state"] == "lost" and 'no gpu "three"' in shown["reason"], f"without that GPU it is lost: {shown}")


def check_from_one_to_several():
    with process.scratch_dir("vgpu-") as state:
        with daemon.private_daemon([], ["--state-dir", state]) as vgpud:
            made = vgpud.ctl("create", "old", "--vram", "64MiB")
            check(made["gpu"] == "soft0" and "GPU" not in ctl(vgpud, "list").stdout, "one GPU needs no name")
            definition = json.loads((pathlib.Path(state) / "vfs" / "old.json").read_text(encoding="utf-8"))
            check("gpu" not in definition, "and is read by a vgpud that knows one GPU only")
        with daemon.private_daemon([], ["--with-gpu", "a", "--with-gpu", "soft0", "--state-dir", state]) as vgpud:
            check(vgpud.show("old")["gpu"] == "soft0", "the GPU that has its name goes on with its VFs")


def check_configuration(config):
    def said(*flags):
        return subprocess.run([VGPUD, "--check-config", *flags], capture_output=True, text=True, timeout=30, check=False)
    check(said("--config", config).returncode == 0, "the configuration is right")
    for flag, why in (("one.polcy=x", 'GPU one has no key "polcy": did you mean policy?'), ("One", "is not usable"),
                      ("policy", "is not usable"), ("one.policy=none", 'policy "none" does not exist'), ("one.policy", "is not NAME")):
        check(why in said("--with-gpu", flag).stderr, f"--with-gpu {flag}: {said('--with-gpu', flag).stderr}")
    with process.scratch_dir("vgpu-") as scratch:
        path = pathlib.Path(scratch) / "bad.toml"
        path.write_text('[gpu.one]\nbase_slice = 3\n', encoding="utf-8")
        check(f'{path}:2:1: [gpu.one] has no key "base_slice": did you mean base_slice_us?' in said("--config", str(path)).stderr,
              "an unknown key is named with its place")


def check_reload(config):
    with daemon.private_daemon([], ["--config", config]) as vgpud:
        text = pathlib.Path(config).read_text(encoding="utf-8")
        pathlib.Path(config).write_text(text.replace("base_slice_us = 4000", "base_slice_us = 4500"), encoding="utf-8")
        said = ctl(vgpud, "config", "reload").stdout
        check("gpu.two.base_slice_us 4000 -> 4500" in said, f"a reload names the GPU: {said}")
        check(vgpud.ctl("gpu", "two")["base_slice_us"] == 4500 and vgpud.ctl("gpu", "one")["base_slice_us"] == 2000, "and changes it alone")
        vgpud.ctl("set-gpu", "one", "--base-slice", "1ms")
        shown = ctl(vgpud, "config", "show").stdout
        check("gpu.one.base_slice_us" in shown and "changed live" in shown, f"what was changed live is shown:\n{shown}")


def check_that_programs_share_each(config):
    """Two programs on each of two GPUs at the same time: each GPU is shared by its own weights, and is nobody else's."""
    with daemon.private_daemon([], ["--config", config]) as vgpud:
        weights = {"m": ("one", 100), "n": ("one", 300), "o": ("two", 100), "p": ("two", 100)}
        for name, (gpu, weight) in weights.items():
            vgpud.create(name, gpu=gpu, weight=weight, vram="128MiB")
        programs = [DirectProgram(vgpud.show(name), harness.command("endless")) for name in weights]
        for program in programs:
            program.wait_for_line("endless: started", 30)

        def received():
            return {vf["name"]: vf["received_ns"] for vf in vgpud.ctl("stats")["vfs"]}
        begun = received()
        harness.wait_until(lambda: min(now - begun[name] for name, now in received().items() if name in weights) > 10**9,
                           "each has had its GPU for a second", 60)
        used = {name: now - begun[name] for name, now in received().items()}
        for names, share in ((("m", "n"), 0.25), (("o", "p"), 0.5)):
            part = used[names[0]] / sum(used[name] for name in names)
            check(abs(part - share) < 0.02, f"{names[0]} has {share} of its GPU: {part:.4f}")
        for program in programs:
            program.stop()


def main():
    with process.scratch_dir("vgpu-") as scratch:
        config = scratch + "/vgpud.toml"
        pathlib.Path(config).write_text(CONFIG, encoding="utf-8")
        check_configuration(config)
        with daemon.private_daemon([], ["--config", config]) as vgpud:
            check_placement(vgpud)
            check_reports(vgpud)
            check_changes(vgpud)
            check_revisions(vgpud)
            check_queue(vgpud)
        check_that_they_stay(config)
        check_from_one_to_several()
        check_that_programs_share_each(config)
        check_reload(config)


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
