# SPDX-License-Identifier: Apache-2.0
"""The approximate operations at chosen values; soft_sweep_test.cc looks at all others. Bounds are those of the PTX ISA."""
import math

from form import form
from ieee import BF16, F16, F32, F64, Fraction
from values import BF_EDGES, edges16, edges32, edges64

INFINITY = math.inf


def number(f, bits):
    if f.is_nan(bits):
        return None
    if f.is_infinite(bits):
        return -INFINITY if f.is_negative(bits) else INFINITY
    v = float(f.value(bits))
    return -0.0 if v == 0 and f.is_negative(bits) else v


def inverse(x):
    return math.copysign(INFINITY, x) if x == 0 else 1 / x


def root(x):
    return math.sqrt(x) if x >= 0 else None


def power(x):
    return 0.0 if x < -1070 else INFINITY if x > 1023 else 2.0 ** x


def logarithm(x):
    return None if x < 0 else -INFINITY if x == 0 else math.log2(x)


def wave(operation):
    return lambda x: None if math.isinf(x) else operation(x)


def limit(f, r):
    """Beyond the largest number is infinity."""
    if r is None or math.isinf(r):
        return r
    most = float(f.value(f.largest))
    return math.copysign(INFINITY, r) if abs(r) > most * (1 + 2.0 ** -(f.fraction_bits + 2)) else r


def approx(name, f, operation, tolerance, rows, ftz="", low=0.0, high=INFINITY, needs=75):
    """Rows whose magnitude is outside of [low, high] are left out."""
    kept = [v for v in rows if f.is_nan(v) or f.is_infinite(v) or f.is_zero(v)
            or low <= abs(number(f, v)) <= high]

    def model(*values):
        values = [number(f, f.flush(v) if ftz else v) for v in values]
        if None in values:
            return None
        r = limit(f, operation(*values))
        least = float(f.value(1 << f.fraction_bits))
        return 0.0 if r is not None and ftz and abs(r) < least * (1 - 2.0 ** -20) else r
    kind = "b%d" % f.bits
    form("%s%s.%s" % (name, ftz, f.name), kind, "%s~%s,%s" % (kind, f.name, tolerance), [(v,) for v in kept], model,
         needs=needs)


SOME = sorted(set(edges32() + [F32.round(Fraction(n, d)) for n in (-200, -150, -127, -126, -100, -24, -3, -1, 1, 2, 3,
                                                                    5, 10, 100, 127, 128, 300)
                               for d in (1, 2, 3, 7)]))
for ftz in ("", ".ftz"):
    # Results below the normal numbers may be a whole unit of the last of them away.
    approx("rcp.approx", F32, inverse, "rel=-23,abs=-149", SOME, ftz)
    approx("sqrt.approx", F32, root, "rel=-23", SOME, ftz)
    approx("rsqrt.approx", F32, lambda x: math.copysign(INFINITY, x) if x == 0 else None if x < 0 else 1 / math.sqrt(x),
           "rel=-22.9", SOME, ftz)
    approx("ex2.approx", F32, power, "rel=-22,abs=-149", SOME, ftz)
    approx("lg2.approx", F32, logarithm, "rel=-22,abs=-22", SOME, ftz)
    approx("sin.approx", F32, wave(math.sin), "abs=-20.5", SOME, ftz, high=6.2831)
    approx("cos.approx", F32, wave(math.cos), "abs=-20.5", SOME, ftz, high=6.2831)


def quotient(a, b):
    if b == 0:
        return None if a == 0 else math.copysign(INFINITY, a) * math.copysign(1, b)
    if math.isinf(a) and math.isinf(b):
        return None
    return 0.0 if math.isinf(b) else a / b


def divide(name, ftz, low, high):
    values = [v for v in SOME[::3] if F32.is_zero(v) or F32.is_infinite(v) or F32.is_nan(v)
              or low <= abs(number(F32, v)) <= high]

    def model(a, b):
        a, b = (number(F32, F32.flush(v) if ftz else v) for v in (a, b))
        if a is None or b is None:
            return None
        r = limit(F32, quotient(a, b))
        return 0.0 if r is not None and ftz and abs(r) < 2.0 ** -126 * (1 - 2.0 ** -20) else r
    form("%s%s.f32" % (name, ftz), "b32 b32", "b32~f32,rel=-22,abs=-148",
         [(a, b) for a in values for b in values], model)


for ftz in ("", ".ftz"):
    divide("div.approx", ftz, 2.0 ** -125, 2.0 ** 125)
    divide("div.full", ftz, 2.0 ** -125, 2.0 ** 125)
form("div.approx.f32.beyond", "b32 b32", "b32~f32,rel=-22", [(a, b) for a in (0x3f800000, 0x40490fdb, 0, 0x7f800000)
                                                             for b in (0x7e800001, 0x7f7fffff, 0xff000000)],
     lambda a, b: None if a == 0x7f800000 else 0.0, code="div.approx.f32 %d, %a, %b;")
approx("tanh.approx", F32, math.tanh, "rel=-11,abs=-149", SOME)
approx("tanh.approx", F16, math.tanh, "rel=-10,abs=-10.987", edges16())
approx("tanh.approx", BF16, math.tanh, "rel=-8,abs=-8", BF_EDGES, needs=90)
approx("ex2.approx", F16, power, "rel=-9.9,abs=-25", edges16())
approx("ex2.approx", BF16, power, "rel=-7,abs=-133", BF_EDGES, ".ftz", needs=90)
for name, f, operation, edges, needs in (("tanh.approx.f16x2", F16, math.tanh, edges16(), 75),
                                         ("ex2.approx.f16x2", F16, power, edges16(), 75),
                                         ("tanh.approx.bf16x2", BF16, math.tanh, BF_EDGES, 90),
                                         ("ex2.approx.ftz.bf16x2", BF16, power, BF_EDGES, 90)):
    kept = [v for v in edges if not f.is_nan(v) and not f.is_subnormal(v)]
    tolerance = "rel=-9,abs=-10" if f is F16 else "rel=-7,abs=-8"
    kind = "b16~%s,%s" % (f.name, tolerance)
    form(name, "b32", "%s %s" % (kind, kind), [(a << 16 | b,) for a, b in zip(kept, kept[3:] + kept[:3])],
         lambda a, g=f, op=operation: (limit(g, op(number(g, a & 0xffff))), limit(g, op(number(g, a >> 16)))),
         code=["%s %%row, %%a;" % name, "mov.b32 {%d, %e}, %row;"], needs=needs)

# --- seeds of f64 division and square root: the lower word is zero ---
LONG = edges64() + [F64.round(Fraction(n, 3)) for n in (1, 2, 4, 5, 100, 12345678)]


def seed(name, operation):
    def model(a):
        a = F64.flush(a)
        x = number(F64, a)
        r = None if x is None else operation(x)
        return 0.0 if r is not None and abs(r) < 2.0 ** -1022 else r
    # NaN and the edges of the range are not said to be accurate.
    rows = [(v,) for v in LONG if not F64.is_nan(v) and (F64.is_zero(v) or F64.is_infinite(v)
                                                         or 2.0 ** -1000 < abs(number(F64, v)) < 2.0 ** 1000)]
    form(name, "b64", "b64~f64,rel=-20 b32", rows, lambda a: (model(a), 0),
         code=[name + " %d, %a;", "{ .reg .b32 %high; mov.b64 {%e, %high}, %d; }"])


seed("rcp.approx.ftz.f64", inverse)
seed("rsqrt.approx.ftz.f64", lambda x: math.copysign(INFINITY, x) if x == 0 else None if x < 0 else 1 / math.sqrt(x))
form("rsqrt.approx.f64", "b64", "b64~f64,rel=-21", [(v,) for v in LONG if not F64.is_nan(v) and not F64.is_negative(v)
                                                   and not F64.is_subnormal(v)],
     lambda a: inverse(math.sqrt(number(F64, a))))
