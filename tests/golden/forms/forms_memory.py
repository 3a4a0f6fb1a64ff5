# SPDX-License-Identifier: Apache-2.0
"""Loads, stores, atomics, address conversion (PTX ISA "Data Movement", "atom", "red").

%m and %s are memory that a thread has to itself; what is stored is read back as bytes, or the other way round.
"""
import random

import ieee
from form import form, ints, signed
from ieee import BF16, F16, F32, F64
from values import edges16, edges32, edges64

TYPES = [t + n for n in ("8", "16", "32", "64") for t in "bus"] + ["f32", "f64"]


def width_of(t):
    return int(t.lstrip("busf"))


def register(t):
    """The kind of register that holds `t`: loads of 8 bits fill 32."""
    return "b%d" % max(width_of(t), 16 if width_of(t) == 16 else 32)


def loaded(t, v):
    """A value of type `t` from memory, extended to its register."""
    v &= (1 << width_of(t)) - 1
    return signed(v, width_of(t)) if t[0] == "s" else v


random_source = random.Random("memory")
BYTES = [tuple(random_source.getrandbits(64) for _ in range(4)) for _ in range(6)] + [
    (0x8081828384858687, 0x7f7e7d7c7b7a7978, 0xffffffffffffffff, 0)]
SPACES = {"global": ("%m", ".global"), "shared": ("%s", ".shared"), "local": ("local", ".local"),
          "generic": ("%m", ""), "const": (None, ".const")}
FILL = ["st%s.v2.b64 [%s], {%%a, %%b};", "st%s.v2.b64 [%s+16], {%%c, %%u};"]


def element(row, t, n):
    n *= width_of(t)
    return (row[0] | row[1] << 64 | row[2] << 128 | row[3] << 192) >> n


def vector(names):
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def load_form(qualifier, space, count, t, needs=75, kind=None):
    where, suffix = SPACES[space]
    names = ["%" + "defg"[n] for n in range(count)]
    name = "ld%s%s%s.%s" % (qualifier, suffix, "" if count == 1 else ".v%d" % count, t)
    title = name if kind is None else name + ".to." + kind
    outs = " ".join([kind or register(t)] * count)
    module, rows = [], BYTES
    if space == "const":
        module = [".const .align 16 .b64 table[4] = {%s};" % ", ".join("0x%016x" % v for v in BYTES[0])]
        rows, code = BYTES[:1], []
        where = "table"
    else:
        code = [line % (suffix, where) for line in FILL]
        if space == "local":
            code.insert(0, ".local .align 16 .b8 local[32];")
    if qualifier.startswith(".nc"):
        name = title = "ld.global%s%s.%s" % (qualifier, "" if count == 1 else ".v%d" % count, t)
        # What is read through the read-only path may not be written in the same kernel: the inputs are read.
        code, where = [], "%in"
    code.append("%s %s, [%s];" % (name, vector(names), where))
    form(title, "b64 b64 b64 b64", outs, rows,
         lambda *row: tuple(loaded(t, element(row, t, n)) for n in range(count)), code=code, needs=needs, module=module)


def store_form(qualifier, space, count, t, needs=75, kind=None):
    where, suffix = SPACES[space]
    names = ["%" + "abcu"[n] for n in range(count)]
    name = "st%s%s%s.%s" % (qualifier, suffix, "" if count == 1 else ".v%d" % count, t)
    title = name if kind is None else name + ".of." + kind
    kind = kind or register(t)
    words = max(1, width_of(t) * count // 64)
    mask = (1 << width_of(t)) - 1
    code = [".local .align 16 .b8 local[32];"] if space == "local" else []
    code += ["st%s.b64 [%s+%d], 0;" % (suffix, where, 8 * w) for w in range(words)]
    code += ["%s [%s], %s;" % (name, where, vector(names))]
    code += ["ld%s.b64 %%%s, [%s+%d];" % (suffix, "defg"[w], where, 8 * w) for w in range(words)]

    def model(*values):
        whole = sum((v & mask) << n * width_of(t) for n, v in enumerate(values))
        return tuple(whole >> 64 * w for w in range(words))
    rows = [tuple(v >> 7 * n for n in range(count)) for row in BYTES for v in row[:2]]
    form(title, " ".join([kind] * count), " ".join(["b64"] * words), rows, model, code=code, needs=needs)


for t in TYPES:
    for count in (1, 2, 4):
        if count * width_of(t) > 128:
            continue
        for space in SPACES:
            load_form("", space, count, t)
            if space != "const":
                store_form("", space, count, t)
        load_form(".nc", "global", count, t)
        load_form(".volatile", "global", count, t)
        load_form(".volatile", "shared", count, t)
        store_form(".volatile", "global", count, t)
        store_form(".volatile", "shared", count, t)
# Registers wider than the value, and what waits for others through generic addresses.
for t in [t for t in TYPES if t[0] in "us"]:
    for qualifier, spaces in (("", SPACES), (".volatile", ("global", "shared", "generic"))):
        for space in spaces:
            load_form(qualifier, space, 1, t, kind="b64")
            if space != "const":
                store_form(qualifier, space, 1, t, kind="b64")
    load_form(".volatile", "generic", 1, t)
    store_form(".volatile", "generic", 1, t)
for t in ("b32", "u32", "f32", "u64", "b64", "u8", "v"):
    for order in (".relaxed", ".acquire"):
        for scope in (".cta", ".gpu", ".sys"):
            if t != "v":
                load_form(order + scope, "global", 1, t)
            else:
                load_form(order + scope, "global", 2, "u32")
                load_form(order + scope, "global", 2, "u64")
    for order in (".relaxed", ".release"):
        for scope in (".cta", ".gpu", ".sys"):
            if t != "v":
                store_form(order + scope, "global", 1, t)
            else:
                store_form(order + scope, "global", 2, "u32")
                store_form(order + scope, "global", 2, "u64")


# The same through generic addresses, as cuda::atomic_ref and block scans use them.
for t, count in (("b32", 1), ("u32", 1), ("b64", 1), ("u32", 2), ("u64", 2)):
    for scope in (".cta", ".gpu", ".sys"):
        for order in (".relaxed", ".acquire"):
            load_form(order + scope, "generic", count, t)
        for order in (".relaxed", ".release"):
            store_form(order + scope, "generic", count, t)
for operator in (".ca", ".cg"):
    load_form(operator, "generic", 1, "u32")
for operator in (".cg", ".wb"):
    store_form(operator, "generic", 1, "u32")


def cached(opcode, operator):
    """The cache operator stands after the space."""
    if opcode == "ld":
        form("ld.global%s.u32" % operator, "b64 b64 b64 b64", "b32", BYTES, lambda a, b, c, u: a & 0xffffffff,
             code=[line % (".global", "%m") for line in FILL] + ["ld.global%s.u32 %%d, [%%m];" % operator])
    else:
        form("st.global%s.u32" % operator, "b32", "b32", [(v,) for v in ints(32)], lambda a: a,
             code=["st.global%s.u32 [%%m], %%a;" % operator, "ld.global.u32 %d, [%m];"])


for op in (".ca", ".cg", ".cs", ".lu", ".cv"):
    cached("ld", op)
for op in (".wb", ".cg", ".cs", ".wt"):
    cached("st", op)

# --- parameters: what is in them is known through ld.param.u64 ---
for t in TYPES:
    kind = register(t)
    form("ld.param." + t, "b32", "pred", [(0,)], lambda a: 1,
         code=[".reg .b%d %%part;" % width_of(register(t)), "ld.param.%s %%part, [out];" % t,
               "{ .reg .b64 %whole, %wide; ld.param.u64 %whole, [out];",
               "st.global.b64 [%m], %whole;", "ld.global.{0} %wide, [%m];".format(t.replace("f", "b")),
               "st.global.b64 [%m+8], 0;", "st.global.%s [%%m+8], %%part;" % ("b%d" % width_of(t)),
               "ld.global.{0} %whole, [%m+8];".format(t.replace("f", "b")), "setp.eq.b64 %d, %whole, %wide; }"])

# --- atomics ---
OPERATIONS = {"add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
              "xor": lambda a, b: a ^ b, "exch": lambda a, b: b, "inc": lambda a, b: 0 if a >= b else a + 1,
              "dec": lambda a, b: b if a == 0 or a > b else a - 1}
ATOMICS = {"add": "u32 s32 u64", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "and": "b32 b64", "or": "b32 b64",
           "xor": "b32 b64", "exch": "b32 b64", "inc": "u32", "dec": "u32"}


def atomic(op, t, model, rows, kind, modifiers="", needs=75, places=("global", "shared", "generic"), noftz=""):
    for space in places:
        where, suffix = SPACES[space]
        three = len(rows[0]) == 3
        name = "atom%s%s.%s%s.%s" % (modifiers, suffix, op, noftz, t)
        code = ["st%s.%s [%s], %%a;" % (suffix, kind, where)]
        code.append("%s %%d, [%s], %%b%s;" % (name, where, ", %c" if three else ""))
        code.append("ld%s.%s %%e, [%s];" % (suffix, kind, where))
        form(name, " ".join([kind] * len(rows[0])), kind + " " + kind, rows, lambda *v: (v[0], model(*v)), code=code,
             needs=needs)
        if op not in ("cas", "exch") and not modifiers.startswith((".acq", ".acquire")):
            code = [line.replace("atom", "red").replace("%d, ", "") for line in code[:2]]
            form(name.replace("atom", "red"), "%s %s" % (kind, kind), kind, rows, model,
                 code=code + ["ld%s.%s %%d, [%s];" % (suffix, kind, where)], needs=needs)


for op, types in ATOMICS.items():
    for t in types.split():
        values = ints(width_of(t))
        rows = [(a, b) for a in values[::2] for b in values[1::2]] + [(v, v) for v in values]
        model = OPERATIONS[op]
        if t[0] == "s":
            model = lambda a, b, w=width_of(t), f=model: f(signed(a, w), signed(b, w))
        atomic(op, t, model, rows, "b%d" % width_of(t))
for scope in (".relaxed.cta", ".acquire.cta", ".release.cta", ".acq_rel.cta", ".release.gpu", ".acq_rel.gpu",
              ".acq_rel.sys"):
    atomic("add", "u32", OPERATIONS["add"], [(1, 2), (0xffffffff, 1)], "b32", modifiers=scope, places=("global",))
    atomic("add", "u64", OPERATIONS["add"], [(1, 2), (0xffffffffffffffff, 1)], "b64", modifiers=scope,
           places=("global",))
    for op, t in (("add", "u32"), ("add", "u64"), ("and", "b32"), ("or", "b32")):
        values = ints(width_of(t))[::3]
        atomic(op, t, OPERATIONS[op], [(a, b) for a in values for b in values], "b%d" % width_of(t), modifiers=scope,
               places=("generic",))
# Scopes may stand behind the space.
for op, t in (("add", "u32"), ("exch", "b32"), ("max", "s32"), ("min", "s32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"),
              ("inc", "u32"), ("dec", "u32")):
    operation = OPERATIONS[op]
    if t[0] == "s":
        operation = lambda a, b, f=operation: f(signed(a, 32), signed(b, 32))
    form("atom.global.sys.%s.%s" % (op, t), "b32 b32", "b32 b32", [(a, b) for a in ints(32)[::2] for b in ints(32)[1::3]],
         lambda a, b, f=operation: (a, f(a, b)),
         code=["st.global.b32 [%m], %a;", "atom.global.sys.%s.%s %%d, [%%m], %%b;" % (op, t), "ld.global.b32 %e, [%m];"])
form("atom.global.sys.cas.b32", "b32 b32 b32", "b32 b32", [(1, 1, 2), (1, 2, 3)], lambda a, b, c: (a, c if a == b else a),
     code=["st.global.b32 [%m], %a;", "atom.global.sys.cas.b32 %d, [%m], %b, %c;", "ld.global.b32 %e, [%m];"])
form("atom.global.sys.add.f64", "b64 b64", "b64 b64", [(0x3ff0000000000000, 0x4000000000000000)],
     lambda a, b: (a, ieee.add(F64, a, b)),
     code=["st.global.b64 [%m], %a;", "atom.global.sys.add.f64 %d, [%m], %b;", "ld.global.b64 %e, [%m];"])
for t in ("b32", "b64", "b16"):
    values = ints(width_of(t))
    rows = [(a, b, c) for a in values[::3] for b in values[::3] for c in values[1::5]]
    atomic("cas", t, lambda a, b, c: c if a == b else a, rows, "b%d" % width_of(t))
for t, f, noftz in (("f32", F32, ""), ("f64", F64, ""), ("f16", F16, ".noftz"), ("bf16", BF16, ".noftz")):
    values = {"f32": edges32, "f64": edges64, "f16": edges16, "bf16": lambda: [0, 0x8000, 0x3f80, 0xbf80, 0x3f81, 0x4049,
                                                                              0x7f7f, 0x7f80, 0xff80, 1]}[t]()
    values = [v for v in values if not f.is_nan(v) and (t != "f32" or not f.is_subnormal(v))]
    rows = [(a, b) for a in values for b in values[::3]]
    if t == "f32":  # adds of f32 in global memory flush subnormal numbers on some GPUs
        rows = [(a, b) for a, b in rows if not F32.is_subnormal(ieee.add(F32, a, b))]
    atomic("add", t, lambda a, b, g=f: ieee.add(g, a, b), rows, "b%d" % f.bits, noftz=noftz,
           needs=90 if t == "bf16" else 75)
    if f.bits == 16:
        rows = [(a << 16 | b, b << 16 | b) for a, b in rows]
        atomic("add", t + "x2", lambda a, b, g=f: ieee.add(g, a >> 16, b >> 16) << 16 | ieee.add(
            g, a & 0xffff, b & 0xffff), rows, "b32", noftz=noftz, needs=90 if t == "bf16" else 75)

# --- addresses ---
form("cvta.shared.u64", "b32", "b32", [(v,) for v in ints(32)], lambda a: a,
     code=["{ .reg .b64 %w; cvt.u64.u32 %w, %s; cvta.shared.u64 %w, %w; st.b32 [%w], %a; ld.shared.b32 %d, [%s]; }"])
form("cvta.to.shared.u64", "b32", "pred", [(0,)], lambda a: 1,
     code=["{ .reg .b64 %w, %v; cvt.u64.u32 %w, %s; cvta.shared.u64 %v, %w; cvta.to.shared.u64 %v, %v;",
           "setp.eq.u64 %d, %w, %v; }"])
form("cvta.global.u64", "b32", "b32", [(v,) for v in ints(32)], lambda a: a,
     code=["{ .reg .b64 %w; cvta.global.u64 %w, %m; st.b32 [%w], %a; ld.global.b32 %d, [%m]; }"])
form("cvta.to.global.u64", "b32", "b32", [(v,) for v in ints(32)], lambda a: a,
     code=["{ .reg .b64 %w; cvta.to.global.u64 %w, %m; st.global.b32 [%w], %a; ld.global.b32 %d, [%m]; }"])
for direction in ("local.u64", "to.local.u64"):
    form("cvta." + direction, "b32", "b32", [(v,) for v in ints(32)], lambda a: a,
         code=[".local .align 8 .b8 local[16];", "{ .reg .b64 %w, %v; mov.u64 %v, local; cvta.local.u64 %w, %v;"]
         + (["st.b32 [%w], %a; ld.local.b32 %d, [local]; }"] if direction == "local.u64" else
            ["st.local.b32 [local], %a; cvta.to.local.u64 %v, %w; ld.local.b32 %d, [%v]; }"]))
for space, address in (("global", "%m"), ("shared", "%w"), ("local", "%v")):
    form("isspacep." + space, "b32", "pred pred pred", [(0,)], lambda a, s=space: (s == "global", s == "shared",
                                                                                  s == "local"),
         code=[".local .align 8 .b8 local[16];", "{ .reg .b64 %w, %v; mov.u64 %v, local; cvta.local.u64 %v, %v;",
               "cvt.u64.u32 %w, %s; cvta.shared.u64 %w, %w;", "isspacep.{0} %d, %m; isspacep.{0} %e, %w;".format(space),
               "isspacep.%s %%f, %%v; }" % space])
for hint in ("prefetch.global.L1", "prefetch.global.L2", "prefetch.L1", "prefetch.L2", "prefetchu.L1"):
    form(hint, "b32", "b32", [(7,)], lambda a: a, code=[hint + " [%m];", "mov.b32 %d, %a;"])

# --- cache policies: hints ---
POLICY = ["{ .reg .b64 %policy; createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %policy, 1.0;"]
form("createpolicy", "b64 b32", "b64 b32 b32", [(v, v & 0xffff) for v in ints(64)], needs=80,
     model=lambda a, b: (a, b, 2 * b),
     code=POLICY + ["createpolicy.fractional.L2::evict_first.b64 %policy;",
                    "createpolicy.range.global.L2::evict_last.b64 %policy, [%m], 64, 128;",
                    "st.global.L2::cache_hint.b64 [%m], %a, %policy;",
                    "ld.global.L1::no_allocate.L2::cache_hint.L2::256B.b64 %d, [%m], %policy;",
                    "st.global.L1::evict_last.b32 [%m+8], %b;",
                    "atom.global.add.L2::cache_hint.u32 %e, [%m+8], %b, %policy;",
                    "ld.global.L1::evict_first.b32 %f, [%m+8];", "red.global.add.L2::cache_hint.u32 [%m+8], 0, %policy; }"])

# --- parameters of functions: a struct that is written and read in vectors ---
ADD_PARTS = [".func (.param .align 16 .b8 r[32]) parts(.param .align 16 .b8 p[32]) { .reg .b32 %a<4>; .reg .b16 %h<4>;"
             " .reg .b64 %l<2>; ld.param.v2.u32 {%a0, %a1}, [p]; ld.param.v2.f32 {%a2, %a3}, [p+8]; st.param.v2.b32 [r], {%a1, %a0};"
             " st.param.f32 [r+8], %a3; st.param.b32 [r+12], %a2; ld.param.v4.u8 {%h0, %h1, %h2, %h3}, [p+16];"
             " st.param.v4.b8 [r+16], {%h3, %h2, %h1, %h0}; ld.param.v2.u8 {%h0, %h1}, [p+20]; st.param.v2.b8 [r+20], {%h1, %h0};"
             " ld.param.u16 %h2, [p+22]; st.param.b16 [r+22], %h2; ld.param.f64 %l0, [p+24]; st.param.f64 [r+24], %l0; ret; }"]
form("ld.param.vectors", "b64 b64 b64 b64", "b64 b64 b64 b64", BYTES, module=ADD_PARTS,
     model=lambda a, b, c, u: ((a & 0xffffffff) << 32 | a >> 32, (b & 0xffffffff) << 32 | b >> 32,
                               int.from_bytes((c & 0xffffffff).to_bytes(4, "big"), "little")
                               | (c >> 40 & 255) << 32 | (c >> 32 & 255) << 40 | c >> 48 << 48, u),
     code=["{ .param .align 16 .b8 x[32]; .param .align 16 .b8 y[32]; st.param.v2.b64 [x], {%a, %b};",
           "st.param.v2.b64 [x+16], {%c, %u}; call (y), parts, (x); ld.param.v2.b64 {%d, %e}, [y];",
           "ld.param.v2.b64 {%f, %g}, [y+16]; }"])
