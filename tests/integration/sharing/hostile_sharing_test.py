#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that is shared with running kernels: flags both ways, what is refused, and that memory which goes away under a
kernel costs its own program alone, with and without a virtual machine."""
import errno
import mmap
import struct

import harness
import hostile_clients as c
from vgpuguest import daemon

MIB = 1 << 20
BUF_ADDRESS, LIMIT_SET, BUFFER_PART, DEVICE_INFO = 32, 27, 3, 25
INVALID_VALUE, ILLEGAL_ADDRESS, NOT_SUPPORTED = 1, 700, 801
FIRST, END = 0x6f0000000000, 0x700000000000  # of the addresses at which kernels reach buffers
GUARD = 8 << 30

# poll(word, told): says 1 there, waits until the word is not 0. store(at, value).
KERNELS = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry poll(.param .u64 word, .param .u64 told){
.reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<3>;
ld.param.u64 %rd1,[word]; ld.param.u64 %rd2,[told];
mov.u32 %r1,1; st.volatile.global.u32 [%rd2],%r1;
L: ld.volatile.global.u32 %r2,[%rd1]; setp.eq.u32 %p1,%r2,0; @%p1 bra L;
ret;
}
.visible .entry store(.param .u64 at, .param .u64 value){
.reg .b32 %r<2>; .reg .b64 %rd<3>;
ld.param.u64 %rd1,[at]; ld.param.u64 %rd2,[value]; cvt.u32.u64 %r1,%rd2; st.global.u32 [%rd1],%r1;
ret;
}
\0"""


def arguments(*values):
    params = struct.pack(f"<{len(values)}Q", *values)
    return struct.pack("<10I", 1, 1, 1, 1, 1, 1, 0, len(params), 0, 0) + params


class Program:
    """A ring with the kernels, whatever it is reached through."""

    def __init__(self, ring):
        self.ring = ring
        harness.check(ring.load(KERNELS)[0] == 0, "the kernels are loaded")
        self.functions = {name: ring.function(name) for name in ("poll", "store")}

    def launch(self, name, *values, flags=0):
        return self.ring.push(c.LAUNCH, [self.functions[name]], payload=arguments(*values), flags=flags)

    def status(self, name, *values):
        self.launch(name, *values)
        return self.ring.call(c.STREAM_SYNC)[0]

    def address(self, buffer):
        status, values = self.ring.call(BUF_ADDRESS, [buffer])
        return values[0] if status == 0 else -status

    def poll(self, at, memory):
        """Starts a kernel that waits for the word at `at`, which is the first of `memory`; returns when it runs."""
        self.launch("poll", at, at + 4)
        harness.wait_until(lambda: word(memory, 4) == 1, "a kernel waits for a word of the host's")


def word(memory, offset):
    return struct.unpack_from("<I", memory, offset)[0]


def take_buffer(client, size):
    status, buffer, _, fds = client.ask(c.BUFFER_ALLOC, size=size)
    harness.check(status == 0, f"a buffer of {size} bytes: {status}")
    return buffer, mmap.mmap(fds[0], size)


def shares(client):
    status, _ = client.call(DEVICE_INFO, span=2048)
    return status == 0 and struct.unpack_from("<i", client.area, c.PAYLOAD_AT + 136 + 4 * 255)[0] == 1


def check_refusals(vf):
    with c.ChannelClient(vf) as client:
        program = Program(client)
        buffer, memory = take_buffer(client, 3 * MIB + 4096)
        at = program.address(buffer)
        harness.check(FIRST + GUARD <= at < END - GUARD and at % (2 * MIB) == 0, f"it is reached at {at:#x}")
        harness.check(program.address(buffer) == at, "asked again the answer is the same")
        for what, number in [("0", 0), ("another one", buffer + 1), ("more than 32 bits", buffer + (1 << 32)),
                             ("all bits", (1 << 64) - 1)]:
            harness.check(program.address(number) == -INVALID_VALUE, f"no address for buffer {what}")
        for what, first, size, status in [("all of it", at, 3 * MIB + 4096, 0), ("one more", at, 3 * MIB + 4097, 1),
                                          ("one before", at - 1, 2, 1), ("a wrap", at, (1 << 64) - 1, 1),
                                          ("the guard", FIRST, 1, 1), ("behind all", END - 1, 1, 1)]:
            got = client.call(c.FILL, [first, 7, 1, size % (1 << 48)])[0]
            harness.check(got == status, f"filling {what}: {got}")
        harness.check(memory[0] == 7 and memory[3 * MIB + 4095] == 7, "the host sees what was filled")
        for part in (16, 1 << 32, (1 << 64) - 1):
            harness.check(client.call(LIMIT_SET, [BUFFER_PART, part])[0] == INVALID_VALUE, f"there is no part {part}")
        harness.check(client.call(LIMIT_SET, [BUFFER_PART, 15])[0] == 0, "the last part of the addresses")
        last, _ = take_buffer(client, 4096)
        harness.check(program.address(last) > FIRST + (END - FIRST) // 16 * 14, "it is taken from then on")
        for what, values in [("unaligned", [2, at + 4, 512]), ("beyond it", [2, at, 4 * MIB]),
                             ("not shared", [2, END + 512, 512])]:
            client.call(c.MODULE_BEGIN, [2, len(KERNELS)])
            client.call(c.MODULE_DATA, [2, 0], payload=KERNELS)
            harness.check(client.call(c.MODULE_LOAD, values)[0] == INVALID_VALUE, f"managed variables: {what}")
            client.call(c.MODULE_UNLOAD, [2])
        harness.check(client.ask(c.BUFFER_FREE, buffer=buffer)[0] == 0, "a buffer is freed")
        harness.check(client.ask(c.BUFFER_FREE, buffer=buffer)[0] == -errno.ENOENT, "but once")
        harness.check(program.address(buffer) == -INVALID_VALUE, "it has no address any more")
        harness.check(client.call(c.FILL, [at, 7, 1, 1])[0] == INVALID_VALUE, "and is not reached")
        harness.check(client.ask(c.BUFFER_ALLOC, size=1 << 34)[0] == -errno.ENOMEM, "more than the quota is refused")
        harness.check(program.status("store", at, 1) == ILLEGAL_ADDRESS, "a kernel that writes there fails")


def check_wild_kernels(vf):
    for what, offset, at_least in [("the guard", FIRST + 4096 - (FIRST + GUARD), ILLEGAL_ADDRESS),
                                   ("2 MiB behind it", 4 * MIB, ILLEGAL_ADDRESS),
                                   ("the last address", END - 4 - (FIRST + GUARD), ILLEGAL_ADDRESS)]:
        with c.ChannelClient(vf) as client:
            program = Program(client)
            buffer, _ = take_buffer(client, 4096)
            program.address(buffer)
            got = program.status("store", FIRST + GUARD + offset, 1)
            harness.check(got == at_least, f"a kernel that writes to {what}: {got}")


def check_neighbours(vf):
    """Two programs of one VF: the same address, each its own bytes; one loses its memory and the other does not notice."""
    with c.ChannelClient(vf) as one, c.ChannelClient(vf) as two:
        programs = [Program(one), Program(two)]
        buffers = [take_buffer(client, 4096) for client in (one, two)]
        at = [program.address(buffer) for program, (buffer, _) in zip(programs, buffers)]
        harness.check(at[0] == at[1], "both have their buffer at the same address")
        for program, (_, memory) in zip(programs, buffers):
            program.poll(at[0], memory)
        harness.check(one.ask(c.BUFFER_FREE, buffer=buffers[0][0])[0] == 0, "one frees its buffer under its kernel")
        harness.check(one.wait_sticky() == ILLEGAL_ADDRESS, f"its kernel fails: {one.text}")
        harness.check(two.sticky == 0, "the other one's runs")
        struct.pack_into("<I", buffers[1][1], 0, 1)
        harness.check(two.call(c.STREAM_SYNC)[0] == 0, "and ends when it is told")
        harness.check(one.call(c.CONTEXT_RESET)[0] == 0, "after a reset")
        buffer, memory = take_buffer(one, 4096)
        again = Program(one)
        again.poll(again.address(buffer), memory)
        struct.pack_into("<I", memory, 0, 1)
        harness.check(one.call(c.STREAM_SYNC)[0] == 0, "the first one shares memory again")


def check_the_end_of_a_buffer(vf):
    """Behind a buffer, in the last of its 2 MiB, a kernel ends its own executor, and nobody else notices."""
    with c.ChannelClient(vf) as client, c.ChannelClient(vf) as other:
        program, bystander = Program(client), Program(other)
        buffer, _ = take_buffer(client, 4096)
        at = program.address(buffer)
        seqno = program.launch("store", at + 4096, 1, flags=c.WANT)
        try:
            client.answer(seqno)
            harness.check(client.sticky != 0, "a write behind a buffer is a fault")
        except EOFError:
            print("ok: a write behind a buffer ends its program's executor", flush=True)
        memory = other.call(c.MEM_ALLOC, [4096])[1][0]
        harness.check(bystander.status("store", memory, 1) == 0, "another program goes on")


def check_guest(vf):
    with c.VfioClient(vf) as guest:
        pieces = [(guest.BASE + 0x1000000 + at, 4096) for at in (0x5000, 0x1000, 0x9000)]  # in no order
        ring = guest.open_channel(0)
        guest.wait_state(0, 1)
        program = Program(ring)
        harness.check(guest.command(3, 0, 9, pieces) == 0, "a buffer of three pieces")
        at = program.address(9)
        harness.check(program.status("store", at + 4096, 77) == 0, "a kernel writes to the second")
        harness.check(word(guest.ram, 0x1001000) == 77, "which is where the guest said")
        for what, segments, refusal in [("of the same number", pieces, errno.EEXIST),
                                        ("outside of the guest's memory", [(guest.BASE + guest.BYTES, 4096)], None),
                                        ("across its end", [(guest.BASE + guest.BYTES - 4096, 8192)], None),
                                        ("not of whole pages", [(guest.BASE + 0x1000000, 100)], errno.EINVAL),
                                        ("at half a page", [(guest.BASE + 0x1000800, 4096)], errno.EINVAL)]:
            status = guest.command(3, 0, 9 if refusal == errno.EEXIST else 10, segments)
            harness.check(status < 0 and (refusal is None or status == -refusal), f"a buffer {what}: {status}")
        overlapping = [(guest.BASE + 0x1001000, 8192), (guest.BASE + 0x1001000, 4096)]
        harness.check(guest.command(3, 0, 11, overlapping) == 0, "pieces of the guest's own that overlap are its business")
        harness.check(program.status("store", program.address(11) + 8192, 78) == 0, "they are")
        harness.check(word(guest.ram, 0x1001000) == 78, "the same bytes")
        struct.pack_into("<II", guest.ram, 0x1005000, 0, 0)
        program.launch("poll", at, at + 4)
        harness.wait_until(lambda: word(guest.ram, 0x1005004) == 1, "a kernel waits for a word of the guest's")
        harness.check(guest.command(4, 0, 9) == 0, "the buffer is removed under it")
        harness.check(ring.wait_sticky() == ILLEGAL_ADDRESS, f"its program fails: {ring.text}")
        harness.check(guest.command(4, 0, 9) < 0, "and cannot be removed twice")
        guest.command(2, 0)
        guest.wait_state(0, 0)

        ring = guest.open_channel(1)
        program = Program(ring)
        harness.check(guest.command(3, 1, 9, pieces) == 0, "the same for another program")
        at = program.address(9)
        struct.pack_into("<II", guest.ram, 0x1005000, 0, 0)
        program.launch("poll", at, at + 4)
        harness.wait_until(lambda: word(guest.ram, 0x1005004) == 1, "its kernel waits")
        guest.unmap_ram()
        harness.check(True, "all memory is taken away under it, and the VF answers")
        guest.map_ram()
        guest.set_page()


def test():
    with daemon.private_daemon([("a", {"vram": "64MiB"}), ("b", {})]) as vgpud:
        a, b = vgpud.show("a"), vgpud.show("b")
        with c.ChannelClient(a) as client:
            if not shares(client):
                harness.skip("this build's kernels reach no buffers")
        check_refusals(a)
        check_wild_kernels(a)
        check_neighbours(a)
        check_the_end_of_a_buffer(a)
        check_guest(b)
        harness.wait_until(lambda: vgpud.show("a")["executors"] == vgpud.show("b")["executors"] == 0,
                           "nothing is left of them")
        harness.run_direct(a, harness.command("vectoradd"))


harness.main(test, needs_guest=False)
