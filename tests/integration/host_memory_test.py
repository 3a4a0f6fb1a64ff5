#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest that fills everything to its end gets out-of-memory errors, and what the host pays for it stays within the
VF's quotas; afterwards the memory is there again."""
import os
import struct
import sys

import harness
import hostile_clients as c
from vgpuguest import daemon, process

MIB = 1 << 20
VRAM, HOST = 64 * MIB, 96 * MIB
PER_PROCESS = 64 * MIB  # what a process may cost beside the quotas: its code, stacks, what malloc loses
OUT_OF_MEMORY, ENOMEM = 2, -12
LIMIT_SET, PRINTF_FIFO = 27, 1
LOCAL = 256 << 10  # bytes of a thread: 8 MiB of a warp
MOST = 64          # of anything, per channel: a limit for tests that fail

HEAD = b".version 7.0\n.target sm_75\n.address_size 64\n"
# Touches all of its local memory, then waits for the flag.
HOG = HEAD + b"""
.visible .entry hog(.param .u64 flag){
.local .align 16 .b8 m[%d];
.reg .pred %%p<3>; .reg .b32 %%r<6>; .reg .b64 %%rd<9>;
ld.param.u64 %%rd1,[flag];
mov.u64 %%rd2, m; mov.u32 %%r1,0;
L: cvt.u64.u32 %%rd3,%%r1; add.u64 %%rd4,%%rd2,%%rd3; st.local.u32 [%%rd4],1; add.u32 %%r1,%%r1,64; setp.lt.u32 %%p1,%%r1,%d; @%%p1 bra L;
W: ld.volatile.global.u32 %%r2,[%%rd1]; setp.eq.u32 %%p2,%%r2,0; nanosleep.u32 1000; @%%p2 bra W;
ret;
}
\0""" % (LOCAL, LOCAL)
PRINTER = HEAD + b"""
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[65] = {%s 0};
.visible .entry printer(){
.reg .pred %%p<2>; .reg .b32 %%r<6>; .reg .b64 %%rd<5>;
mov.u32 %%r1,0; mov.u64 %%rd1,text; cvta.global.u64 %%rd2,%%rd1; mov.u64 %%rd3,0;
L: { .param .b64 p0; .param .b64 p1; .param .b32 q;
st.param.b64 [p0],%%rd2; st.param.b64 [p1],%%rd3; call.uni (q), vprintf, (p0, p1); }
add.u32 %%r1,%%r1,1; setp.lt.u32 %%p1,%%r1,500; @%%p1 bra L;
ret;
}
\0""" % (b"120," * 64)
BODY = b"".join(b"add.u32 %%r1,%%r1,%d;\n" % i for i in range(30000))


def launch(grid=1, block=32, params=b""):
    return struct.pack("<10I", grid, 1, 1, block, 1, 1, 0, len(params), 0, 0) + params


def pss(pid):
    """Bytes of host memory of a process; what it shares with others counts in part."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


class Greedy(c.ChannelClient):
    """A CUDA process that takes all that it can get."""

    def __init__(self, vf):
        super().__init__(vf)
        self.words = memoryview(self.area).cast("I")
        self.refused = {}
        self.buffers = []
        self.pinned = []
        self.arrays = []
        self.modules = []
        status, values = self.call(c.MEM_ALLOC, [MIB])
        self.flag = values[0] if status == 0 else 0
        if self.flag:
            assert self.call(c.FILL, [self.flag, 0, 4, 1024])[0] == 0

    def put_word(self, offset, value):
        # At once: the executor reads while we write, and struct.pack_into writes zeros first.
        self.words[offset // 4] = value & 0xffffffff

    def close(self):
        self.words.release()
        super().close()

    def note(self, what, status):
        """False once `what` is out of memory; no other refusal is expected."""
        harness.check(status in (0, OUT_OF_MEMORY, ENOMEM), f"{what}: done or out of memory, not {status}: {self.text}")
        if status:
            self.refused[what] = self.refused.get(what, 0) + 1
        return status == 0

    def kernel(self, name, module):
        """None: an earlier operation that nobody waited for was out of memory, or this one."""
        status, values = self.call(c.MODULE_FUNCTION, [module, len(name)], payload=name.encode(), span=4096)
        return values[0] if self.note("function", status) else None

    def fill_vram(self):
        for _ in range(MOST):
            status, values = self.call(c.MEM_ALLOC, [4 * MIB])
            if not self.note("vram", status):
                return
            self.arrays.append(values[0])
            self.note("fill", self.call(c.FILL, [values[0], 7, 4, MIB])[0])

    def fill_kernels(self):
        """Blocks that wait: as many as fit are resident, the other kernels wait for their ends or fail."""
        status, _ = self.load(HOG, 1000)
        if not self.note("hog", status) or not self.flag:
            return
        hog = self.kernel("hog", 1000)
        if hog is None:
            return
        for stream in range(100, 106):
            if not self.note("stream", self.call(c.STREAM_CREATE, [stream, 1, 0])[0]):
                return
            self.push(c.LAUNCH, [hog], payload=launch(16, 32, struct.pack("<Q", self.flag)), stream=stream, flags=0)

    def fill_printf(self):
        status, _ = self.load(PRINTER, 1001)
        if not self.note("printer", status):
            return
        self.note("fifo", self.call(LIMIT_SET, [PRINTF_FIFO, 64 * MIB])[0])
        printer = self.kernel("printer", 1001)
        if printer is None:
            return
        self.push(c.STREAM_CREATE, [200, 1, 0])
        self.note("printing", self.call(c.LAUNCH, [printer], payload=launch(8), stream=200)[0])

    def fill_modules(self):
        for n in range(1, MOST):
            image = HEAD + b".visible .entry k%d(){\n.reg .b32 %%r<3>;\n" % n + BODY + b"ret;\n}\n\0"
            if not self.note("module", self.load(image, n)[0]):
                return
            self.modules.append(n)

    def fill_queues(self):
        for stream in range(1000, 1600):
            if not self.note("stream", self.call(c.STREAM_CREATE, [stream, 1, 0])[0]):
                return
            # Behind a gate that nobody opens.
            self.push(26, [3, 1], stream=stream, flags=0)
            self.push(c.COPY_IN, [self.flag], payload=b"x" * 4096, stream=stream, flags=0)

    def fill_buffers(self):
        """Pinned buffers that the executor fills, not the client."""
        for _ in range(4):
            status, buffer, _, fds = self.ask(c.BUFFER_ALLOC, size=8 * MIB)
            if not self.note("buffer", status):
                return
            self.buffers.append(buffer)
            self.pinned += fds
            if self.flag:
                for at in range(0, 8 * MIB, MIB):
                    self.note("copy", self.call(c.BUF_OUT, [self.flag, buffer, at, MIB], stream=2)[0])

    def empty(self):
        """Everything goes back, the channel stays."""
        status, values = self.call(c.CONTEXT_RESET)
        harness.check(status == 0, f"the context is reset ({status} {values})")
        for buffer in self.buffers:
            self.ask(c.BUFFER_FREE, buffer=buffer)
        self.buffers = []


class Meter:
    def __init__(self, vgpud, name):
        self.vgpud, self.name, self.most = vgpud, name, 0

    def processes(self):
        pid = self.vgpud.process.pid
        return harness.children_of(pid, "vgpud-exec") + harness.children_of(pid, "vgpud-vf")

    def look(self, when):
        pids = self.processes()
        total = sum(map(pss, pids))
        bound = VRAM + HOST + PER_PROCESS * len(pids)
        shown = self.vgpud.show(self.name)
        print(f"{when}: {total / MIB:.0f} MiB in {len(pids)} processes, at most {bound / MIB:.0f}; VRAM "
              f"{shown['vram_used_bytes'] / MIB:.1f}, host memory {shown['host_memory_used_bytes'] / MIB:.1f} MiB", flush=True)
        harness.check(total <= bound, f"{when}: {total / MIB:.0f} MiB are within {bound / MIB:.0f}")
        harness.check(shown["host_memory_used_bytes"] <= HOST and shown["vram_used_bytes"] <= VRAM, "so are the ledgers")
        return total


def fill(vgpud, channels):
    vf, meter = vgpud.show("greedy"), Meter(vgpud, "greedy")
    # Each begins with something else, so that each is what meets the end in one of them.
    steps = ["fill_vram", "fill_printf", "fill_buffers", "fill_kernels", "fill_modules", "fill_queues", "fill_buffers"]
    clients = [Greedy(vf) for _ in range(channels)]
    rest = meter.look(f"{channels} channels at rest")
    for turn in range(len(steps)):
        for n, client in enumerate(clients):
            getattr(client, steps[(n + turn) % len(steps)])()
            meter.look(f"channel {n} after {steps[(n + turn) % len(steps)]}")
    refused = {what for client in clients for what in client.refused}
    print("out of memory:", {n: client.refused for n, client in enumerate(clients)})
    harness.check({"vram", "module"} <= refused, f"memory and modules came to their ends: {refused}")
    harness.check("buffer" in refused, f"so did pinned buffers: {refused}")
    held = sum(os.fstat(fd).st_blocks * 512 for client in clients for fd in client.pinned)
    harness.check(held >= 8 * MIB, f"of which some were filled: {held / MIB:.0f} MiB")
    harness.check(all(client.state == 1 and client.sticky == 0 for client in clients), "every channel is open and well")
    for client in clients:
        client.empty()
    harness.wait_until(lambda: vgpud.show("greedy")["host_memory_used_bytes"] <= 8 * MIB * channels,
                       "the ledger has its memory back", seen=lambda: str(vgpud.show("greedy")["host_memory_used_bytes"]))
    for client in clients:
        for fd in client.pinned:
            harness.check(os.fstat(fd).st_blocks == 0, "a buffer that was freed holds no memory, whoever keeps it")
            os.close(fd)
    after = meter.look(f"{channels} channels after a reset")
    harness.check(after <= rest + channels * 24 * MIB, f"and the host: {after / MIB:.0f} after {rest / MIB:.0f} MiB")
    with Greedy(vf) as fresh:
        harness.check(fresh.load(HOG)[0] == 0, "a program runs again")
    for client in clients:
        client.close()
    harness.wait_until(lambda: not harness.children_of(vgpud.process.pid, "vgpud-exec"), "the executors end")
    harness.wait_until(lambda: vgpud.show("greedy")["host_memory_used_bytes"] == 0, "nothing is in use")


def test():
    for channels in map(int, sys.argv[1:] or ["1", "8"]):
        options = {"vram": f"{VRAM // MIB}MiB", "host-memory": f"{HOST // MIB}MiB"}
        with daemon.private_daemon([("greedy", options)]) as vgpud:
            try:
                fill(vgpud, channels)
            except BaseException:
                print(process.tail(vgpud.log))
                raise


if __name__ == "__main__":
    harness.main(test, needs_guest=False)
