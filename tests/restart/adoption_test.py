#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""VFs outlive a vgpud --keep-vfs: the next one goes on with them, and programs see time pass and nothing else."""
import contextlib
import json
import os
import pathlib
import signal
import socket

import bed
import harness
from harness import check
from vgpuguest.paths import ToolError
from vgpuguest.program import DirectProgram

VRAM = {"vram": "128MiB"}


def servers(*names):
    return sorted(pid for pid, words in bed.processes() if words[0] == "vgpud-vf" and any(n in words for n in names))


def run(vgpud, vf, program="vectoradd"):
    harness.run_direct(vgpud.show(vf), harness.command(program))


def check_that_it_goes_on():
    """Killed, handed over, with and without programs; stopped, nothing is left."""
    with bed.supervised() as vgpud:
        for vf, weight in (("adopt-a", 100), ("adopt-b", 300)):
            vgpud.create_kept(vf, weight=weight, **VRAM)
        run(vgpud, "adopt-a")
        vgpud.ctl("pause", "adopt-b")
        vgpud.ctl("resume", "adopt-b")
        keys = ("name", "uuid", "weight", "vram_bytes", "vfio_user_socket", "channel_socket", "state")
        before = [{key: vgpud.show(vf)[key] for key in keys} for vf in vgpud.names()]
        processes = servers("adopt-a", "adopt-b")
        workers = [bed.Worker(vgpud.show(vf)) for vf in ("adopt-a", "adopt-b")]
        for worker in workers:
            worker.wait_until_it_works()
        endless = DirectProgram(vgpud.show("adopt-a"), harness.command("endless"))
        endless.wait_for_line("endless: started", 30)
        for signum in (signal.SIGKILL, signal.SIGUSR1, signal.SIGKILL):
            code = vgpud.kill(signum)
            check(code == (0 if signum == signal.SIGUSR1 else -signum), f"it ends by signal {signum}: {code}")
            # A new program waits until somebody can start its executor.
            waiting = DirectProgram(before_vf(before, "adopt-b"), harness.command("vectoradd"))
            vgpud.start()
            after = [{key: vgpud.show(vf)[key] for key in keys} for vf in vgpud.names()]
            check(after == before, f"the same VFs: {before} then {after}")
            check(servers("adopt-a", "adopt-b") == processes, "with the same processes")
            check(waiting.wait(30) == 0, f"a program that came in between: {waiting.text()}")
            run(vgpud, "adopt-a")
            check(endless.code is None, f"the endless kernel goes on: {endless.text()}")
        for worker in workers:
            code, said = worker.finish()
            check(code == 0 and json.loads(said)["rounds"] > 0, f"a program that worked all the time: {code} {said}")
        endless.stop()
        harness.wait_until(lambda: vgpud.show("adopt-a")["executors"] == 0, "no executor is left")
        check(vgpud.kill(signal.SIGTERM) == 0, "it stops")
        check(bed.of_vfs("adopt-a", "adopt-b") == [] and vgpud.keepers() == [], f"nothing is left: {vgpud.text()}")
        left = sorted(os.listdir(vgpud.runtime_dir))
        check(left == ["state", "vgpud.log"], f"no file is left: {left}")


def before_vf(before, name):
    return next(vf for vf in before if vf["name"] == name)


def check_what_cannot_be_gone_on_with():
    """It is ended, with the reason in the log, and what has a definition is made again."""
    with bed.supervised() as vgpud:
        vgpud.create("adopt-transient", **VRAM)
        vgpud.create_kept("adopt-dead", **VRAM)
        vgpud.create_kept("adopt-gone", **VRAM)
        gone = vgpud.show("adopt-gone")["uuid"]
        vgpud.kill()
        os.kill(servers("adopt-dead")[0], signal.SIGKILL)
        definition = pathlib.Path(vgpud.runtime_dir, "state/vfs/adopt-gone.json")
        definition.write_text(definition.read_text().replace(gone, gone[:-4] + "beef"))
        vgpud.start()
        check(vgpud.names() == ["adopt-dead", "adopt-gone"], f"those with a definition: {vgpud.names()}")
        for reason in ("vf=adopt-transient: what an earlier vgpud left of it is ended: there is no definition of it",
                       "vf=adopt-dead: what an earlier vgpud left of it is ended: its vgpud-vf has ended",
                       "vf=adopt-gone: what an earlier vgpud left of it is ended: another VF has its name now"):
            check(reason in vgpud.text(), f"{reason!r} is in the log: {vgpud.text()}")
        check(bed.of_vfs("adopt-transient") == [], "the transient VF's processes have ended")
        check(len(servers("adopt-dead", "adopt-gone")) == 2, "each VF has one process")
        for vf in vgpud.names():
            run(vgpud, vf)


def hang_once(vgpud, vf):
    """A program of the VF has an executor that does not leave the GPU: the scheduler kills it."""
    program = DirectProgram(vgpud.show(vf), harness.command("endless"))
    program.wait_for_line("endless: started", 30)
    (executor,) = [pid for pid, words in bed.processes() if words[0] == "vgpud-exec" and vf in words]
    # One that is stopped while others have the GPU does not hang.
    for _ in range(100):
        with contextlib.suppress(ProcessLookupError):
            os.kill(executor, signal.SIGSTOP)
        with contextlib.suppress(ToolError):
            check(program.wait(0.3) != 0, "a program whose executor hangs hears of it")
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(executor, signal.SIGCONT)
    check(False, f"its executor was never on the GPU when it was stopped: {program.text()}")


def check_that_settings_hold():
    """What set-gpu changed, and how often a VF hung."""
    with bed.supervised() as vgpud:
        vgpud.create_kept("adopt-g", **VRAM)
        vgpud.ctl("set-gpu", "--policy", "reserve", "--base-slice", "3ms")
        vgpud.ctl("set", "adopt-g", "--guarantee", "25%")
        before = {key: vgpud.ctl("gpu")[key] for key in ("policy", "base_slice_us")}
        check(before == {"policy": "reserve", "base_slice_us": 3000}, f"{before}")
        vgpud.create_kept("adopt-i", **VRAM)
        busy = bed.Worker(vgpud.show("adopt-i"))
        busy.wait_until_it_works()
        for _ in range(2):
            hang_once(vgpud, "adopt-g")
        for signum in (signal.SIGKILL, signal.SIGUSR1):
            vgpud.kill(signum)
            vgpud.start()
            after = {key: vgpud.ctl("gpu")[key] for key in before}
            check(after == before, f"they hold for the next vgpud: {after}")
            check(vgpud.show("adopt-g")["state"] == "ready", "with what a VF was promised")
        hang_once(vgpud, "adopt-g")
        harness.wait_until(lambda: vgpud.show("adopt-g")["state"] == "parked", "the third hang parks it, whoever saw the two")
        check(busy.finish()[0] == 0, "the other one has worked all the time")
        check(vgpud.kill(signal.SIGTERM) == 0, "it stops")
        vgpud.arguments = ("--base-slice-us", "4000")
        vgpud.start()
        check(vgpud.ctl("gpu")["policy"] == "strict", "after a stop nothing of it is left")
        vgpud.ctl("set-gpu", "--base-slice", "5ms", "--idle", "hold")
        vgpud.kill()
        vgpud.arguments = ("--base-slice-us", "6000")
        vgpud.start()
        after = vgpud.ctl("gpu")
        check((after["base_slice_us"], after["idle"]) == (6000, "hold"), f"what is said anew counts more: {after}")
        check("gpu.base_slice_us 5000, changed live, does not hold any more: files and flags say 6000 now" in vgpud.text(),
              "which the log says")


def check_that_each_gpu_has_its_own():
    """VFs, counters and settings of several GPUs, with a program on each that works all the time."""
    with bed.supervised(("--with-gpu", "left", "--with-gpu", "right.base_slice_us=4000")) as vgpud:
        gpus = {"adopt-j": "left", "adopt-k": "right"}
        for vf, gpu in gpus.items():
            vgpud.create_kept(vf, gpu=gpu, **VRAM)
        vgpud.ctl("set-gpu", "left", "--base-slice", "3ms")
        vgpud.ctl("set-gpu", "right", "--policy", "reserve")
        workers = [bed.Worker(vgpud.show(vf)) for vf in gpus]
        for worker in workers:
            worker.wait_until_it_works()
        processes = servers(*gpus)

        def settings():
            return {gpu: [vgpud.ctl("gpu", gpu)[key] for key in ("policy", "base_slice_us", "revision")] for gpu in gpus.values()}

        def counted():
            return {vf["name"]: vf["received_ns"] for vf in vgpud.ctl("stats")["vfs"]}
        harness.wait_until(lambda: min(counted().values()) > 0, "both have had their GPU")
        before = settings()
        check([row[:2] for row in before.values()] == [["strict", 3000], ["reserve", 4000]], f"{before}")
        for signum in (signal.SIGKILL, signal.SIGUSR1, signal.SIGKILL):
            used = counted()
            vgpud.kill(signum)
            vgpud.start()
            check(settings() == before, f"the settings of both hold: {settings()}")
            check({vf: vgpud.show(vf)["gpu"] for vf in gpus} == gpus and servers(*gpus) == processes, "each VF is where it was")
            check(all(ns >= used[vf] for vf, ns in counted().items()), f"no counter is lost: {used} then {counted()}")
        for worker in workers:
            check(worker.finish()[0] == 0, "the programs have worked all the time")
        vgpud.kill()
        vgpud.arguments = ("--with-gpu", "left", "--base-slice-us", "5000")
        vgpud.start()
        check(vgpud.ctl("gpu")["base_slice_us"] == 5000, "what is said anew of all GPUs counts more than what was changed of one")
        check("gpu=right: it is not served any more" in vgpud.text(), "a GPU that is gone is told")
        check(vgpud.show("adopt-k")["state"] == "lost" and bed.of_vfs("adopt-k") == [], "its VF is lost, and nothing runs of it")


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def hangs_up(path, size, fds):
    """Does the keeper hang up when this is sent? What vgpud has sent before is handled then."""
    with connect(path) as other, contextlib.suppress(ConnectionResetError):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(other, [os.urandom(size)], fds)
        return other.recv(4096) == b""
    return True


def check_that_the_keeper_is_kept_in():
    """It is in a jail; whoever is not vgpud gets nothing from it and costs it nothing."""
    with bed.supervised() as vgpud:
        vgpud.create_kept("adopt-h", **VRAM)
        (keeper,) = vgpud.keepers()
        status = status_of(keeper)
        jail = {key: status[key].strip() for key in ("Seccomp", "NoNewPrivs", "CapEff", "CapPrm")}
        check(harness.SANITIZED or jail == {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16}, f"it is in a jail: {jail}")
        path = os.path.join(vgpud.runtime_dir, "keep.sock")
        check(os.stat(path).st_mode & 0o777 == 0o600, "nobody else may connect")
        check(hangs_up(path, 1, []), "it hangs up")
        files = bed.open_files(keeper)
        # It waits a bounded time for each that says nothing; those that say something wrong are refused at once.
        silent = [connect(path) for _ in range(2)]
        for size in (0, 1, 32, 255, 256, 257, 4096):
            for fds in ([], [0], [0] * 8):
                check(hangs_up(path, size, fds), f"{size} bytes with {len(fds)} descriptors: it hangs up")
        for each in silent:
            each.close()
        harness.wait_until(lambda: bed.open_files(keeper) == files, "no descriptor is left of it")
        vgpud.kill()
        vgpud.start()
        check(vgpud.keepers() == [keeper] and vgpud.names() == ["adopt-h"], "the next vgpud gets everything")
        run(vgpud, "adopt-h")


def connect(path):
    other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    other.settimeout(60)
    other.connect(path)
    return other


def check_that_states_hold():
    """Paused and parked VFs stay so, until somebody says otherwise; a kill in between is no pardon."""
    with bed.supervised() as vgpud:
        vgpud.create_kept("adopt-e", **VRAM)
        vgpud.create_kept("adopt-f", **VRAM)
        busy = bed.Worker(vgpud.show("adopt-f"))
        busy.wait_until_it_works()
        for _ in range(3):
            hang_once(vgpud, "adopt-e")
        harness.wait_until(lambda: vgpud.show("adopt-e")["state"] == "parked", "it is parked after three hangs")
        check(busy.finish()[0] == 0, "the other one has worked all the time")
        vgpud.ctl("pause", "adopt-f")
        for _ in range(2):
            vgpud.kill()
            vgpud.start()
            states = [vgpud.show(vf)["state"] for vf in ("adopt-e", "adopt-f")]
            check(states == ["parked", "paused"], f"after a kill as before: {states}")
        waiting = [DirectProgram(vgpud.show(vf), harness.command("vectoradd")) for vf in ("adopt-e", "adopt-f")]
        harness.wait_until(lambda: all(vgpud.show(vf)["executors"] == 1 for vf in ("adopt-e", "adopt-f")), "both wait")
        vgpud.kill()
        vgpud.start()
        check(all(each.code is None for each in waiting), "they go on waiting")
        vgpud.ctl("resume", "adopt-f")
        check(waiting[1].wait(30) == 0, f"the paused VF's program ends: {waiting[1].text()}")
        vgpud.ctl("reset", "adopt-e")  # which ends its channels
        waiting[0].wait(30)
        run(vgpud, "adopt-e")
        vgpud.kill()
        vgpud.start()
        check(vgpud.show("adopt-e")["state"] == "ready", "and is no longer parked for the next vgpud")


def check_that_nothing_is_left_written():
    """Of a VF that was to end with its domain, and has lost that before it was destroyed."""
    with bed.supervised() as vgpud:
        made = pathlib.Path(vgpud.runtime_dir, "state", "vfs") / "adopt-l.json"
        vgpud.request("POST", "/v1/vfs", {"name": "adopt-l", "vram_bytes": 1 << 20, "domain": "guest", "ends_with_domain": True,
                                          "domain_uuid": "11111111-2222-3333-4444-555555555555"})
        check(made.exists(), "it is written down while it has its domain")
        vgpud.request("DELETE", "/v1/vfs/adopt-l/domain")
        harness.wait_until(lambda: not made.exists(), "it is not kept any more")
        vgpud.destroy("adopt-l")
        check(not made.exists(), "nothing is left of it")


def check_a_dead_server():
    """A VF whose vgpud-vf dies is made again for the next client, as the same VF, but not without end."""
    with bed.supervised() as vgpud:
        vgpud.create_kept("adopt-d", weight=250, **VRAM)
        run(vgpud, "adopt-d")
        before, (server,) = vgpud.show("adopt-d"), servers("adopt-d")
        program = DirectProgram(before, harness.command("endless"))
        program.wait_for_line("endless: started", 30)
        os.kill(server, signal.SIGKILL)
        check(program.wait(30) != 0, "its program hears of it")
        harness.wait_until(lambda: "plug it in again" in vgpud.text(), "it is made again")
        after = vgpud.show("adopt-d")
        check(all(after[key] == before[key] for key in ("uuid", "weight", "channel_socket")), f"the same VF: {after}")
        run(vgpud, "adopt-d")
        vgpud.kill()
        vgpud.start()
        run(vgpud, "adopt-d")
        for text in ("made again for the next client", "stays failed"):
            os.kill(servers("adopt-d")[0], signal.SIGKILL)
            harness.wait_until(lambda text=text: vgpud.text().count(text) >= 1 and servers("adopt-d") == [] or
                               vgpud.show("adopt-d")["state"] == "ready" and text in vgpud.text(), text)
            harness.wait_until(lambda: vgpud.show("adopt-d")["state"] in ("ready", "failed"), "it has settled")
            if vgpud.show("adopt-d")["state"] == "failed":
                break
        check(vgpud.show("adopt-d")["state"] == "failed", "one that dies again and again stays failed")


def check_without_its_keeper():
    """Without vgpud-keep everything ends with vgpud, as it does without --keep-vfs. A wrong secret gets nothing."""
    with bed.supervised() as vgpud:
        vgpud.create_kept("adopt-c", **VRAM)
        first = servers("adopt-c")
        vgpud.kill()
        secret = pathlib.Path(vgpud.runtime_dir, "keep.secret")
        check(secret.stat().st_mode & 0o777 == 0o600, "the secret is vgpud's alone")
        secret.write_bytes(bytes(32))
        vgpud.start()
        harness.wait_until(lambda: len(servers("adopt-c")) == 1, "those of the first vgpud end")
        check(servers("adopt-c") != first, "they were not gone on with")
        check("somebody who is not vgpud has connected: refused" in vgpud.text(), "which the log says")
        run(vgpud, "adopt-c")
        (keeper,) = vgpud.keepers()
        os.kill(keeper, signal.SIGKILL)
        vgpud.kill()
        harness.wait_until(lambda: bed.of_vfs("adopt-c") == [], "without vgpud-keep they end with vgpud")
        vgpud.start()
        run(vgpud, "adopt-c")


def test():
    check_that_it_goes_on()
    check_what_cannot_be_gone_on_with()
    check_that_states_hold()
    check_that_settings_hold()
    check_that_each_gpu_has_its_own()
    check_that_the_keeper_is_kept_in()
    check_that_nothing_is_left_written()
    check_a_dead_server()
    check_without_its_keeper()


harness.main(test, needs_guest=False)
