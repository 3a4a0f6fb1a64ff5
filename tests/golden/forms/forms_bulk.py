# SPDX-License-Identifier: Apache-2.0
"""cp.reduce.async.bulk (PTX ISA "cp.reduce.async.bulk"): 16 bytes of a thread's own memory, element by element."""
import random

import ieee
from form import form, signed
from ieee import BF16, F16, F32, F64
from values import BF_EDGES, edges16, edges32, edges64, least

INTEGERS = {"add": lambda d, b: d + b, "and": lambda d, b: d & b, "or": lambda d, b: d | b, "xor": lambda d, b: d ^ b,
            "inc": lambda d, b: 0 if d >= b else d + 1, "dec": lambda d, b: b if d == 0 or d > b else d - 1}
ORDERS = {"min": min, "max": max}
FLOATS = {"f16": (F16, edges16()), "bf16": (BF16, BF_EDGES), "f32": (F32, edges32()), "f64": (F64, edges64())}


def elements(whole, bits):
    return [whole >> at & ((1 << bits) - 1) for at in range(0, 128, bits)]


def rows(t, bits, values):
    source = random.Random(t)
    some = [tuple(source.choice(values) if source.random() < 0.8 else source.getrandbits(bits) for _ in range(2 * 128 // bits))
            for _ in range(40)]
    packed = [[sum(v << bits * n for n, v in enumerate(half)) for half in (r[:128 // bits], r[128 // bits:])] for r in some]
    return [tuple(v >> at & (1 << 64) - 1 for v in row for at in (0, 64)) for row in packed]


def reduction(op, t, bits, operation, values, noftz=""):
    def model(*words):
        before, given = words[0] | words[1] << 64, words[2] | words[3] << 64
        parts = [operation(d, b) & ((1 << bits) - 1) for d, b in zip(elements(before, bits), elements(given, bits))]
        whole = sum(v << bits * n for n, v in enumerate(parts))
        return whole & (1 << 64) - 1, whole >> 64
    name = "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s%s.%s" % (op, noftz, t)
    form(name, "b64 b64 b64 b64", "b64 b64", rows(t, bits, values), model, needs=90,
         code=["st.global.v2.b64 [%m], {%a, %b}; st.shared.v2.b64 [%s], {%c, %u}; fence.proxy.async;",
               name + " [%m], [%s], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
               "ld.global.v2.b64 {%d, %e}, [%m];"])
    if bits == 32 and t != "f32" or (op, t) == ("add", "u64"):
        name = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s.%s" % (op, t)
        form(name, "b64 b64 b64 b64", "b64 b64 pred", rows(t, bits, values), lambda *words: model(*words) + (1,), needs=90,
             code=["{ .reg .b32 %o, %to; .reg .b64 %state; add.u32 %o, %s, 64; add.u32 %to, %s, 32;",
                   "mbarrier.init.shared.b64 [%o], 1; mbarrier.arrive.expect_tx.shared.b64 %state, [%o], 16;",
                   "st.shared.v2.b64 [%to], {%a, %b}; st.shared.v2.b64 [%s], {%c, %u}; fence.proxy.async;",
                   name + " [%to], [%s], 16, [%o];",
                   "WAIT: mbarrier.try_wait.shared.b64 %f, [%o], %state; @!%f bra WAIT;",
                   "ld.shared.v2.b64 {%d, %e}, [%to]; }"])


for op, operation in INTEGERS.items():
    for t in {"add": ("u32", "s32", "u64"), "inc": ("u32",), "dec": ("u32",)}.get(op, ("b32", "b64")):
        bits = int(t[1:])
        reduction(op, t, bits, operation, [0, 1, 2, 7, (1 << bits) - 1, 1 << bits - 1])
for op, operation in ORDERS.items():
    for t in ("u32", "s32", "u64", "s64"):
        bits = int(t[1:])
        read = (lambda v, n=bits: signed(v, n)) if t[0] == "s" else (lambda v: v)
        reduction(op, t, bits, lambda d, b, o=operation, r=read: o(r(d), r(b)),
                  [0, 1, 2, 7, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1])
for t, (f, edges) in FLOATS.items():
    numbers = [v for v in edges if not f.is_nan(v)] if f is F64 else edges
    if f is F64:
        numbers = [v for v in numbers if not f.is_infinite(v)]
    reduction("add", t, f.bits, lambda d, b, g=f: ieee.add(g, d, b), numbers, ".noftz" if f.bits == 16 else "")
    if f.bits == 16:
        for op, greatest in (("min", False), ("max", True)):
            reduction(op, t, f.bits, lambda d, b, g=f, most=greatest: least(g, d, b, most), edges)


def masked(a, b, c, u, mask):
    """What 16 bytes become when those of the mask are copied over them."""
    before, given = (a | b << 64), (c | u << 64)
    chosen = [given if mask >> n & 1 else before for n in range(16)]
    whole = sum((v >> 8 * n & 0xff) << 8 * n for n, v in enumerate(chosen))
    return whole & (1 << 64) - 1, whole >> 64


source = random.Random("masks")
name = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask"
form(name, "b64 b64 b64 b64 b16", "b64 b64",
     [tuple(source.getrandbits(64) for _ in range(4)) + (mask,)
      for mask in [0, 0xffff, 1, 0x8000, 0x5555, 0x00ff] + [source.getrandbits(16) for _ in range(20)]], masked, needs=100,
     code=["st.global.v2.b64 [%m], {%a, %b}; st.shared.v2.b64 [%s], {%c, %u}; fence.proxy.async;",
           "cp.async.bulk.prefetch.L2.global [%m], 16;",
           name + " [%m], [%s], 16, %v; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
           "ld.global.v2.b64 {%d, %e}, [%m];"])
