# SPDX-License-Identifier: Apache-2.0
"""Floating-point values at which something happens, and rules that several tables of forms share."""
BF_EDGES = [0, 0x8000, 1, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f00, 0x3f7f, 0x3f80, 0xbf80, 0x3f81, 0x3c00, 0x3b80, 0xbb80,
            0x4049, 0x4300, 0x4380, 0x7f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1]
# What holds of '<', '=', '>', '?' (a NaN is there) where a comparison is true.
HOLDS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "num": "<=>",
         "equ": "=?", "neu": "<>?", "ltu": "<?", "leu": "<=?", "gtu": ">?", "geu": ">=?", "nan": "?"}


def edges16():
    return [0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x8400, 0x0401, 0x3800, 0x3801, 0xb800, 0x3bff, 0x3c00, 0xbc00,
            0x3c01, 0x3e00, 0x4100, 0x4248, 0x6400, 0x6401, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01]


def edges32():
    """Zeros, subnormals, the border to normal numbers, ties, the largest, infinities, NaNs."""
    return [0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x00800001, 0x3f7fffff,
            0x3f800000, 0xbf800000, 0x3f800001, 0x33800000, 0xb3800000, 0x33800001, 0x34000000, 0x3effffff, 0x40490fdb,
            0x4b800001, 0x7f7fffff, 0xff7fffff, 0x7e800000, 0x7f000000, 0x7f800000, 0xff800000, 0x7fc00000,
            0xffc12345, 0x7f800001]


def edges64():
    return [0, 1 << 63, 1, (1 << 63) + 1, 0x000fffffffffffff, 0x0010000000000000, 0x8010000000000000,
            0x0010000000000001, 0x3fefffffffffffff, 0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001,
            0x3ca0000000000000, 0xbca0000000000000, 0x3ca0000000000001, 0x3cb0000000000000, 0x400921fb54442d18,
            0x7fefffffffffffff, 0xffefffffffffffff, 0x7fd0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
            0x7ff8000000000000, 0xfff8123456789abc]


def least(f, a, b, greatest=False, nan_wins=False):
    if f.is_nan(a) or f.is_nan(b):
        if nan_wins or (f.is_nan(a) and f.is_nan(b)):
            return f.nan
        return b if f.is_nan(a) else a
    key = lambda v: -(v & ~f.sign_bit) - 1 if f.is_negative(v) else v
    return max(a, b, key=key) if greatest else min(a, b, key=key)


def xor_sign(f, a, b, **more):
    sign = (a ^ b) & f.sign_bit
    r = least(f, a & ~f.sign_bit, b & ~f.sign_bit, **more)
    return r if f.is_nan(r) else r | sign


def relu(f, v):
    return v if f.is_nan(v) or not f.is_negative(v) else 0
