# SPDX-License-Identifier: Apache-2.0
"""Random CUDA programs that compute the same functions on the host and on the device and compare, for every thread.

A function is plain C on integers of all widths, float and double: arithmetic, conversions, arrays, branches, loops, calls,
recursion, calls through pointers. What C or the two compilers may do in different ways does not occur (signed overflow, wide
shifts, contraction, the bits of a NaN). "fuel" bounds the work of a thread.
"""
import random

TYPES = {"u8": "uint8_t", "i8": "int8_t", "u16": "uint16_t", "i16": "int16_t", "u32": "uint32_t", "i32": "int32_t",
         "u64": "uint64_t", "i64": "int64_t", "f": "float", "d": "double"}
INTEGERS = [name for name in TYPES if name not in "fd"]
FUEL = 300
THREADS, BLOCKS = 48, 2

HEAD = r"""
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
#define HD __host__ __device__
#define FUNCTION(name) uint64_t name(uint32_t a, const uint32_t* in, int32_t& fuel)
template <class V>
HD inline uint64_t Mix(uint64_t h, V v) {
  uint64_t bits = 0;
  if (v == v) memcpy(&bits, &v, sizeof v);
  return (h ^ bits) * 1099511628211ull;
}
HD inline int32_t Whole(double v) { return v > -1e9 && v < 1e9 ? static_cast<int32_t>(v) : 7; }
HD inline uint32_t High(uint32_t a, uint32_t b) { return static_cast<uint64_t>(a) * b >> 32; }
HD inline uint64_t High64(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<unsigned __int128>(a) * b >> 64;
#endif
}
"""

MAIN = r"""
int main() {
  std::vector<uint32_t> in(64);
  uint32_t x = 2654435761u * (SEED + 1);
  for (uint32_t& v : in) {
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    v = x >> (x & 31);
  }
  std::vector<uint64_t> want(ALL * COUNT), got(ALL * COUNT);
  for (uint32_t t = 0; t < ALL; ++t) Compute(in.data(), want.data(), t);
  uint32_t* device_in;
  uint64_t* device_out;
  cudaMalloc(&device_in, in.size() * 4);
  cudaMalloc(&device_out, got.size() * 8);
  cudaMemcpy(device_in, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
  Kernel<<<ALL / THREADS, THREADS>>>(device_in, device_out);
  const cudaError_t error = cudaMemcpy(got.data(), device_out, got.size() * 8, cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return printf("seed %d: %s\n", SEED, cudaGetErrorString(error)), 2;
  int wrong = 0;
  for (uint32_t i = 0; i < ALL * COUNT; ++i)
    if (want[i] != got[i] && wrong++ < 5)
      printf("seed %d, F%d, thread %d: host %016llx, device %016llx\n", SEED, i % COUNT, i / COUNT,
             static_cast<long long>(want[i]), static_cast<long long>(got[i]));
  printf("seed %d: %d of %d wrong\n", SEED, wrong, ALL * COUNT);
  return wrong != 0;
}
"""


def width(kind):
    return int(kind[1:])


class Function:
    """The text of function number `number`; it calls itself and those before it."""

    def __init__(self, chance, number):
        self.chance, self.number = chance, number
        self.variables = [("a", "u32")]
        self.lines = []
        self.depth, self.loops, self.names = 1, 0, 0

    def text(self):
        for _ in range(self.chance.randrange(5, 16)):
            self.statement()
        mixed = [f"  h = Mix(h, {name});" for name, _ in self.variables]
        inlining = "__noinline__ " if self.chance.random() < 0.6 else ""
        return "\n".join([f"HD {inlining}FUNCTION(F{self.number}) {{", "  uint32_t memory[16];",
                          "  for (int n = 0; n < 16; ++n) memory[n] = a * n;", "  --fuel;", *self.lines,
                          "  uint64_t h = 1469598103934665603ull;", *mixed,
                          "  for (int n = 0; n < 16; ++n) h = Mix(h, memory[n]);", "  return h;", "}", ""])

    def say(self, line):
        self.lines.append("  " * self.depth + line)

    # --- expressions; `deep` is how deep in one they are ---

    def literal(self, kind):
        pick = self.chance
        if kind in "fd":
            value = pick.choice([0.0, 1.0, -1.0, 0.5, 3.0, 1e-3, pick.uniform(-10, 10), pick.uniform(-1e6, 1e6)])
            return f"{value!r}" + ("f" if kind == "f" else "")
        value = pick.choice([0, 1, 2, 3, 7, 31, 255, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, pick.randrange(1 << 16),
                             pick.randrange(1 << 32)])
        if width(kind) == 64:
            value = pick.choice([value, 1 << 63, pick.randrange(1 << 64)])
        return f"({TYPES[kind]}){value}ull"

    def expression(self, kind, deep=0):
        if deep > 4 or self.chance.random() < 0.2:
            known = [name for name, its in self.variables if its == kind]
            return self.chance.choice(known) if known and self.chance.random() < 0.85 else self.literal(kind)
        return (self.real if kind in "fd" else self.integer)(kind, deep + 1)

    def real(self, kind, deep):
        pick, suffix = self.chance, "f" if kind == "f" else ""
        a, b, c = (lambda: self.expression(kind, deep) for _ in range(3))
        forms = [
            (11, lambda: f"({a()} {pick.choice('+-*/')} {b()})"),
            (1, lambda: f"fma{suffix}({a()}, {b()}, {c()})"),
            (1, lambda: f"sqrt{suffix}(fabs{suffix}({a()}))"),
            (1, lambda: f"{pick.choice(['floor', 'ceil', 'trunc', 'rint'])}{suffix}({a()})"),
            (1, lambda: f"{pick.choice(['fmin', 'fmax'])}{suffix}({a()}, {b()})"),
            (2, lambda: f"({TYPES[kind]}){self.expression(pick.choice(INTEGERS), deep)}"),
            (1, lambda: f"({TYPES[kind]}){self.expression('d' if kind == 'f' else 'f', deep)}"),
            (1, lambda: f"({self.condition(deep)} ? {a()} : {b()})"),
        ]
        return pick.choices([form for _, form in forms], [weight for weight, _ in forms])[0]()

    def integer(self, kind, deep):
        pick, bits, name = self.chance, width(kind), TYPES[kind]
        wide = "uint64_t" if bits == 64 else "uint32_t"
        a, b = (lambda: f"({wide}){self.expression(kind, deep)}" for _ in range(2))
        u32, u64 = (lambda: self.expression("u32", deep)), (lambda: self.expression("u64", deep))

        def divided():
            if kind[0] == "u":
                return f"({a()} {pick.choice('/%')} ({b()} | 1))"
            return f"(({name}){a()} {pick.choice('/%')} ({name})(({b()} & 63) + 1))"

        forms = [
            (20, lambda: f"({a()} {pick.choice('+-*&|^')} {b()})"),
            (3, lambda: f"({a()} << ({u32()} & {min(bits, 32) - 1}))"),
            (3, lambda: f"(({name}){a()} >> ({u32()} & {min(bits, 32) - 1}))"),
            (4, divided),
            (3, lambda: f"(~{a()})"),
            (5, lambda: self.expression(pick.choice(INTEGERS), deep)),
            (3, lambda: f"Whole({self.expression(pick.choice('fd'), deep)})"),
            (2, lambda: f"in[{u32()} & 63]"),
            (2, lambda: f"High({u32()}, {u32()})"),
            (1, lambda: f"High64({u64()}, {u64()})"),
            (4, lambda: f"({self.condition(deep)} ? {a()} : {b()})"),
        ]
        return f"({name})" + pick.choices([form for _, form in forms], [weight for weight, _ in forms])[0]()

    def condition(self, deep=0):
        pick, kind = self.chance, self.chance.choice(list(TYPES))
        sign = pick.choice(["<", ">", "<=", ">=", "==", "!="])
        compared = f"({self.expression(kind, deep + 1)} {sign} {self.expression(kind, deep + 1)})"
        if deep < 4 and pick.random() < 0.3:
            return f"({compared} {pick.choice(['&&', '||'])} {self.condition(deep + 2)})"
        return f"(!{compared})" if pick.random() < 0.1 else compared

    # --- statements ---

    def block(self, most):
        self.depth += 1
        known = len(self.variables)
        for _ in range(self.chance.randrange(1, most)):
            self.statement()
        del self.variables[known:]
        self.depth -= 1

    def statement(self):
        simple = [(22, self.declare), (30, self.assign), (8, self.store), (4, self.load)]
        nested = [(16, self.branch), (10, self.loop), (4, self.switch), (4, self.call), (2, self.recurse)]
        forms = simple if self.depth > 5 else simple + nested
        self.chance.choices([form for _, form in forms], [weight for weight, _ in forms])[0]()

    def declare(self):
        kind = self.chance.choice(list(TYPES))
        value = self.expression(kind)
        self.names += 1
        self.say(f"{TYPES[kind]} v{self.names} = {value};")
        self.variables.append((f"v{self.names}", kind))

    def assign(self):
        name, kind = self.chance.choice(self.variables)
        self.say(f"{name} = {self.expression(kind)};")

    def store(self):
        self.say(f"memory[{self.expression('u32', 2)} & 15] {self.chance.choice(['=', '^=', '+='])} "
                 f"{self.expression('u32', 1)};")

    def load(self):
        name, kind = self.chance.choice(self.variables)
        self.say(f"{name} = ({TYPES[kind]})memory[{self.expression('u32', 2)} & 15];")

    def branch(self):
        self.say(f"if ({self.condition()}) {{")
        self.block(5)
        if self.chance.random() < 0.6:
            self.say("} else {")
            self.block(5)
        self.say("}")

    def loop(self):
        if self.loops == 3:
            return
        self.names += 1
        self.loops += 1
        n = f"n{self.names}"
        self.say(f"for (uint32_t {n} = 0; {n} < ({self.expression('u32', 2)} & 7) + {self.chance.randrange(3)} && "
                 f"fuel-- > 0; ++{n}) {{")
        self.block(5)
        if self.chance.random() < 0.3:
            self.say(f"  if ({self.condition(2)}) {self.chance.choice(['break', 'continue'])};")
        self.say("}")
        self.loops -= 1

    def switch(self):
        self.say(f"switch ({self.expression('u32', 2)} & 3) {{")
        for case in range(self.chance.randrange(2, 5)):
            self.say(f"case {case}: {{")
            self.block(3)
            self.say("}" + self.chance.choice(["", " break;", " break;"]))
        self.say("}")

    def call(self):
        if self.number == 0:
            return
        name, kind = self.chance.choice(self.variables)
        first, second = (self.chance.randrange(max(0, self.number - 6), self.number) for _ in range(2))
        called = self.chance.choice([f"F{first}", f"({self.condition(2)} ? F{first} : F{second})"])
        self.say(f"if (fuel > 0) {name} = ({TYPES[kind]}){called}({self.expression('u32', 2)}, in, fuel);")

    def recurse(self):
        self.say(f"if (fuel > 0 && {self.condition(1)}) {{")
        self.say(f"  fuel -= {FUEL // 15};")
        self.say(f"  memory[3] ^= (uint32_t)F{self.number}({self.expression('u32', 2)}, in, fuel);")
        self.say("}")


def program(seed, count):
    """The text of a CUDA program with `count` functions; it ends with status 1 if host and device differ anywhere."""
    chance = random.Random(seed)
    calls = "\n".join(f"  fuel = {FUEL};\n  out[t * COUNT + {n}] = F{n}(t, in, fuel);" for n in range(count))
    return "\n".join([
        HEAD, f"enum {{ SEED = {seed}, COUNT = {count}, THREADS = {THREADS}, ALL = {THREADS * BLOCKS} }};",
        *(f"HD FUNCTION(F{n});" for n in range(count)), *(Function(chance, n).text() for n in range(count)),
        "HD void Compute(const uint32_t* in, uint64_t* out, uint32_t t) {", "  int32_t fuel;", calls, "}",
        "__global__ void Kernel(const uint32_t* in, uint64_t* out) {",
        "  Compute(in, out, blockIdx.x * blockDim.x + threadIdx.x);", "}", MAIN])
