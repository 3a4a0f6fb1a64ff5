#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever dies or vanishes in the middle of work (an executor, a program, a VM, its memory): the one concerned gets an
error, the VF works for the next at once, nothing is left behind."""
import errno
import os
import pathlib
import signal
import struct

import harness
import hostile_bed
import hostile_clients as c
from vgpuguest import paths
from vgpuguest.program import DirectProgram

PTX = paths.REPO / "tests" / "cuda" / "ptx"
LAUNCH_FAILED = 719


def endless(ring):
    """Lets the endless kernel run on the ring's channel."""
    status, text = ring.load((PTX / "endless.ptx").read_bytes() + b"\0")
    assert status == 0, text
    kernel = ring.function("endless")
    status, values = ring.call(c.MEM_ALLOC, [4096])
    assert status == 0
    assert ring.call(c.FILL, [values[0], 0, 4, 1024])[0] == 0
    ring.push(c.LAUNCH, [kernel], flags=0,
              payload=struct.pack("<10I", 1, 1, 1, 32, 1, 1, 0, 8, 0, 0) + struct.pack("<Q", values[0]))
    return values[0]


def executor_of(bed, action):
    """The executor that `action` brings up, and the action's result."""
    before = set(bed.executors())
    result = action()
    harness.wait_until(lambda: len(set(bed.executors()) - before) == 1, "its executor runs")
    return (set(bed.executors()) - before).pop(), result


def kill_an_executor(bed):
    pid, program = executor_of(bed, lambda: DirectProgram(bed.bad, harness.command("endless")))
    program.wait_for_line("endless: started", 30)
    os.kill(pid, signal.SIGKILL)
    code = program.wait(30)
    harness.check(code not in (0, 137) and "ended unexpectedly" in program.text(),
                  f"its program ends with an error: {code}\n{program.text()}")
    bed.run_in(bed.bad)
    pid, ring = executor_of(bed, lambda: c.ChannelClient(bed.bad))
    endless(ring)
    os.kill(pid, signal.SIGKILL)
    harness.wait_until(lambda: ring.state == 2, "the channel is lost")
    harness.check(ring.sticky == LAUNCH_FAILED and "vgpud's log" in ring.text, f"and says why: {ring.text}")
    ring.close()


def programs_vanish(bed):
    for _ in range(10):
        ring = c.ChannelClient(bed.bad)
        endless(ring)
        ring.close()
    bed.run_in(bed.bad)
    program = DirectProgram(bed.bad, harness.command("endless"))
    program.wait_for_line("endless: started", 30)
    program.stop()
    bed.run_in(bed.bad)


def channel_numbers_are_used_again(bed):
    """A channel is closed with a kernel running and opened again at once: busy until its executor is gone, then new."""
    with c.VfioClient(bed.bad) as guest:
        spare = guest.AREA + 20 * 0x300000 // 2
        busy = 0
        for _ in range(10):
            endless(guest.open_channel(7))
            guest.ram[spare:spare + c.CHANNEL_BYTES] = bytes(c.CHANNEL_BYTES)
            struct.pack_into("<IIQI", guest.ram, spare, c.MAGIC, c.ABI_VERSION, 0x200000, 1)
            assert guest.command(2, 7) == 0
            status = guest.command(1, 7, 0, [(guest.BASE + spare, c.CHANNEL_BYTES)])
            assert status in (0, -errno.EBUSY), status
            if status == 0:
                assert guest.command(2, 7) == 0
            busy += status != 0
            guest.wait_state(7, 0)
        print(f"ok: a channel number is used again only when its executor is gone ({busy} of 10 had to wait)")
        harness.check(guest.open_channel(7).call(c.NOP)[0] == 0, "and works again")


def memory_is_taken_away(bed):
    with c.VfioClient(bed.bad) as guest:
        rings = [guest.open_channel(i) for i in range(3)]
        for ring in rings:
            endless(ring)
        with hostile_bed.within(3, "DMA_UNMAP of memory with running kernels is answered"):
            guest.unmap_ram()
        harness.wait_until(lambda: bed.vgpud.show("bad")["executors"] <= 1, "the executors are gone")
        guest.map_ram()
        for i in range(3):
            guest.command(2, i)
            guest.wait_state(i, 0)
        harness.check(guest.open_channel(0).call(c.NOP)[0] == 0, "mapped again, a channel can be opened")
        # A buffer alone can go away under a running copy.
        ring = guest.open_channel(1)
        other = os.memfd_create("more")
        os.ftruncate(other, 32 << 20)
        where = 0x40000000
        guest.call(c.DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, where, 32 << 20), [other])
        assert guest.command(3, 1, 1, [(where, 32 << 20)]) == 0
        status, values = ring.call(c.MEM_ALLOC, [32 << 20])
        assert status == 0
        copies = [ring.push(c.BUF_IN, [values[0], 1, 0, 32 << 20]) for _ in range(20)]
        guest.call(c.DMA_UNMAP, struct.pack("<IIQQ", 24, 0, where, 32 << 20))
        statuses = [ring.answer(number)[0] for number in copies]
        harness.check(1 in statuses and set(statuses) <= {0, 1}, f"copies from memory that went away fail: {statuses}")
        harness.check(ring.call(c.NOP)[0] == 0, "their channel lives on")
        # Memory that is cut off under the executor.
        ring = guest.open_channel(2)
        endless(ring)
        os.ftruncate(guest.memory, guest.AREA)
        for i in range(3):
            guest.write(0x1000 + 4 * i, struct.pack("<I", 1))
        harness.wait_until(lambda: any(guest.channel_state(i) == 2 for i in range(3)),
                           "a channel whose memory is cut off is lost")
        os.close(other)
    bed.run_in(bed.bad)


def the_guest_reboots(bed):
    with c.VfioClient(bed.bad) as guest:
        for how in ("DEVICE_RESET", "function level reset"):
            for i in range(4):
                endless(guest.open_channel(i))
            if how == "DEVICE_RESET":
                guest.call(c.RESET)
            else:
                express = 0
                pointer = guest.call(c.READ, struct.pack("<QII", 0x34, 7, 1))[16]
                while pointer and not express:
                    kind, following = guest.call(c.READ, struct.pack("<QII", pointer, 7, 2))[16:18]
                    express, pointer = (pointer, 0) if kind == 0x10 else (0, following)
                guest.call(c.WRITE, struct.pack("<QII", express + 9, 7, 1) + b"\x80")
            harness.wait_until(lambda: bed.vgpud.show("bad")["executors"] <= 1, f"{how} ends all kernels of the guest")
            guest.ram[guest.PAGE:guest.PAGE + 4096] = bytes(4096)
            guest.set_page()
            for i in range(4):
                harness.check(guest.open_channel(i).call(c.NOP)[0] == 0, f"after {how} channel {i} works")
            for i in range(4):
                assert guest.command(2, i) == 0
                guest.wait_state(i, 0)


def the_vm_vanishes(bed):
    for i in range(3):
        guest = c.VfioClient(bed.bad)
        endless(guest.open_channel(2 * i))  # whose number is free when its executor is gone
        guest.close()
        with c.VfioClient(bed.bad) as following:
            ring = following.open_channel(2 * i + 1)
            harness.check(ring.call(c.NOP)[0] == 0, "the next VM works at once")
    harness.wait_until(lambda: not bed.vgpud.show("bad")["client_connected"], "the VF knows that its VM is gone")


def server_of(bed, name):
    (server,) = [pid for pid in bed.servers() if name.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    return server


def the_server_of_a_vm_dies(bed):
    """The VF stays failed, for its VM can't connect again. What was in use is in use no more, and nothing else is said."""
    bed.vgpud.create("dies", vram="64MiB")
    with c.VfioClient(bed.vgpud.show("dies")) as guest:
        endless(guest.open_channel(0))
        harness.wait_until(lambda: bed.vgpud.show("dies")["vram_used_bytes"] > 0, "it uses memory")
        os.kill(server_of(bed, "dies"), signal.SIGKILL)
        harness.wait_until(lambda: bed.vgpud.show("dies")["state"] == "failed", "the VF failed")
    shown = bed.vgpud.show("dies")
    harness.check(not any(shown[key] for key in ("vram_used_bytes", "host_memory_used_bytes", "client_connected")),
                  f"it uses nothing: {shown}")
    harness.check('vgpud_vf_vram_used_bytes{gpu="soft0",vf="dies"} 0\n' in bed.vgpud.ctl_text("metrics"), "the metrics say the same")
    bed.vgpud.destroy("dies")


def the_server_of_programs_dies(bed):
    """The VF is made again, as the same one, and works for the next program."""
    bed.vgpud.create("dies", vram="64MiB")
    before, server = bed.vgpud.show("dies"), server_of(bed, "dies")
    program = DirectProgram(before, harness.command("endless"))
    program.wait_for_line("endless: started", 30)
    os.kill(server, signal.SIGKILL)
    harness.check(program.wait(30) not in (0, 137), f"its program ends with an error\n{program.text()}")
    harness.wait_until(lambda: "vf=dies: made again" in bed.log(), "it is made again")
    after = bed.vgpud.show("dies")
    harness.check(after["state"] == "ready" and after["vram_used_bytes"] == 0 and after["uuid"] == before["uuid"], f"it is: {after}")
    bed.run_in(after)
    bed.vgpud.destroy("dies")


def test():
    with hostile_bed.bed() as bed:
        the_server_of_a_vm_dies(bed)
        the_server_of_programs_dies(bed)
        with hostile_bed.unaffected(bed):
            kill_an_executor(bed)
            programs_vanish(bed)
            channel_numbers_are_used_again(bed)
            memory_is_taken_away(bed)
            the_guest_reboots(bed)
            the_vm_vanishes(bed)


harness.main(test, needs_guest=False)
