// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma: values of each kind against a plain product, with the layouts of shared memory written down a second
// time here; and what ends a context. Elements are small whole numbers, so every sum is exact.
#include <gmock/gmock.h>

#include "gpu/soft/number/half.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;
using VGPUD_ISA::FloatToHalf;
using VGPUD_ISA::HalfToFloat;

constexpr uint32_t kColumns = 16;  // of D that the kernel hands out
constexpr uint32_t kTileBytes = 8192;
constexpr uint32_t kTileB = 4096;

struct Layout {
  const char* name;
  uint64_t mode;  // of the descriptor
  bool by_k;
  uint64_t leading, stride;  // by k the stride is 512 divided by the bytes of an element
  // Byte of an element of `bytes` bytes.
  uint32_t (*at)(uint32_t line, uint32_t k, uint32_t bytes);
};
uint32_t Swizzled(uint32_t offset, uint32_t mask) { return offset ^ ((offset >> 7 & mask) << 4); }
const Layout kLayouts[] = {
    {"plain", 0, false, 2048, 128,
     [](uint32_t line, uint32_t k, uint32_t bytes) {
       return line / 8 * 128 + line % 8 * 16 + k * bytes / 16 * 2048 + k * bytes % 16;
     }},
    {"32", 6, false, 16, 256,
     [](uint32_t line, uint32_t k, uint32_t bytes) { return Swizzled(line * 32 + k * bytes, 1); }},
    {"plain by k", 0, true, 128, 0,
     [](uint32_t line, uint32_t k, uint32_t bytes) {
       const uint32_t in_piece = 16 / bytes;
       return line / in_piece * (512 / bytes) + line % in_piece * bytes + k / 8 * 128 + k % 8 * 16;
     }},
};

struct Kind {
  const char* name;
  uint32_t k, bytes;
  uint32_t type_d, type_a, type_b;
  uint32_t (*encode)(int v);
  uint32_t (*result)(double v);
  double (*from)(uint32_t v);
};
uint32_t Half(int v) { return FloatToHalf(static_cast<float>(v)); }
uint32_t Word(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
float FloatOf(uint32_t bits) {
  float v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
uint32_t SumF32(double v) { return Word(static_cast<float>(v)); }
double FromF32(uint32_t v) { return static_cast<double>(FloatOf(v)); }
// e4m3 of a whole number from -3 to 3.
uint32_t E4(int v) { return (v < 0 ? 128u : 0u) | (v == 0 ? 0u : v * v == 1 ? 0x38u : v * v == 4 ? 0x40u : 0x44u); }
const Kind kKinds[] = {
    {"f16", 16, 2, 1, 0, 0, Half, SumF32, FromF32},
    {"f16", 16, 2, 0, 0, 0, Half, [](double v) { return Half(static_cast<int>(v)); },
     [](uint32_t v) { return static_cast<double>(HalfToFloat(v)); }},
    {"f16", 16, 2, 1, 1, 1, [](int v) { return Word(static_cast<float>(v)) >> 16; }, SumF32, FromF32},
    {"tf32", 8, 4, 1, 2, 2, [](int v) { return Word(static_cast<float>(v)); }, SumF32, FromF32},
    {"f8f6f4", 32, 1, 1, 0, 0, E4, SumF32, FromF32},
    {"i8", 32, 1, 2, 1, 1, [](int v) { return static_cast<uint32_t>(v) & 255; },
     [](double v) { return static_cast<uint32_t>(static_cast<int32_t>(v)); },
     [](uint32_t v) { return static_cast<double>(static_cast<int32_t>(v)); }},
};

uint64_t Descriptor(const Layout& l, uint64_t start, uint32_t bytes = 2) {
  const uint64_t stride = l.by_k ? 512 / bytes : l.stride;
  return start / 16 | l.leading / 16 << 16 | stride / 16 << 32 | uint64_t{1} << 46 | l.mode << 61;
}
uint32_t InstructionOf(const Kind& k, uint32_t rows, bool by_k_a, bool by_k_b) {
  return k.type_d << 4 | k.type_a << 7 | k.type_b << 10 | uint32_t{by_k_a} << 15 | uint32_t{by_k_b} << 16 |
         kColumns / 8 << 17 | rows / 16 << 24;
}

// What the kernel below has in its memory: the tile, D before, A for tensor memory.
struct Input {
  std::vector<uint8_t> tile = std::vector<uint8_t>(kTileBytes);
  std::vector<uint32_t> d = std::vector<uint32_t>(128 * kColumns);
  std::vector<uint32_t> a = std::vector<uint32_t>(128 * 8);
};
struct Call {
  uint64_t a, b;
  uint32_t descriptor;
  std::string kind;
  std::string operands = "[%r20], %rd5, %rd6, %r21, 1";
  std::string lanes = "1";  // threads of the warp that ask for it
};

std::string Body(const Call& c) {
  std::string body =
      ".shared .align 1024 .b8 tile[8192]; .shared .align 8 .b8 bar[8]; .shared .align 4 .b8 slot[4];"
      "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd5, [a]; ld.param.u64 %rd6, [b];"
      "ld.param.u32 %r21, [descriptor]; mov.u32 %r30, %tid.x; mul.wide.u32 %rd3, %r30, 64; add.u64 %rd4, %rd1, %rd3;"
      "shl.b32 %r31, %r30, 6; mov.u32 %r32, tile; add.u32 %r31, %r31, %r32;";
  for (int n = 0; n < 64; n += 16)
    body += "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd4+" + std::to_string(n) + "]; st.shared.v4.u32 [%r31+" +
            std::to_string(n) + "], {%r1, %r2, %r3, %r4};";
  body +=
      "setp.ge.u32 %p1, %r30, 32; @%p1 bra THERE;"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32; setp.ne.u32 %p2, %r30, 0;"
      "mbarrier.init.shared::cta.b64 [bar], " +
      c.lanes + "; THERE: bar.sync 0; ld.shared.u32 %r20, [slot]; add.u32 %r22, %r20, 16;";
  std::string sums;
  for (int n = 1; n <= 16; ++n) sums += (n == 1 ? "%r" : ", %r") + std::to_string(n);
  for (int n = 0; n < 64; n += 16) {
    const int r = n / 4 + 1;
    body += "ld.global.v4.u32 {%r" + std::to_string(r) + ", %r" + std::to_string(r + 1) + ", %r" +
            std::to_string(r + 2) + ", %r" + std::to_string(r + 3) + "}, [%rd4+" + std::to_string(8192 + n) + "];";
  }
  body += "tcgen05.st.sync.aligned.32x32b.x16.b32 [%r20], {" + sums +
          "}; mul.wide.u32 %rd7, %r30, 32; add.u64 %rd7, %rd1, %rd7;"
          "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd7+16384]; ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd7+16400];"
          "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r22], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};"
          "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"
          "setp.ge.u32 %p1, %r30, " +
          c.lanes + "; @%p1 bra WAIT; tcgen05.mma.cta_group::1.kind::" + c.kind + " " + c.operands +
          "; mov.u32 %r33, bar; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r33];"
          "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;"
          "tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x16.b32 {" +
          sums + "}, [%r20]; tcgen05.wait::ld.sync.aligned; add.u64 %rd4, %rd2, %rd3;";
  for (int n = 0; n < 16; ++n)
    body += "st.global.u32 [%rd4+" + std::to_string(4 * n) + "], %r" + std::to_string(n + 1) + ";";
  return body;
}
Outcome RunMma(const Call& c, const Input& in, std::vector<uint32_t>* d = nullptr, Isa isa = BestIsa()) {
  SoftMachine m(isa, 64 << 20, 1, **FindComputeCapability("10.0"));
  const Outcome loaded =
      m.LoadBody(".param .u64 in, .param .u64 out, .param .u64 a, .param .u64 b, .param .u32 descriptor", Body(c));
  if (loaded.status != CuStatus::kSuccess) return loaded;
  std::vector<uint32_t> all(kTileBytes / 4);
  std::memcpy(all.data(), in.tile.data(), kTileBytes);
  all.insert(all.end(), in.d.begin(), in.d.end());
  all.insert(all.end(), in.a.begin(), in.a.end());
  const GpuVa from = m.Upload(all);
  const GpuVa to = m.Alloc(128 * kColumns * 4);
  const Outcome ran =
      m.Run("k", {{1, 1, 1}, {128, 1, 1}, 0}, Params().Add(from).Add(to).Add(c.a).Add(c.b).Add(c.descriptor));
  if (d != nullptr) *d = m.Download<uint32_t>(to, 128 * kColumns);
  return ran;
}

int ElementA(uint32_t row, uint32_t k) { return static_cast<int>((row * 5 + k * 3 + row * k) % 7) - 3; }
int ElementB(uint32_t column, uint32_t k) { return static_cast<int>((column * 4 + k * 5 + column * k) % 7) - 3; }
double Before(uint32_t lane, uint32_t column) { return static_cast<int>(lane + 2 * column) - 40; }

struct Variant {
  uint32_t rows = 128;
  bool tensor_a = false, add = true;
  uint32_t scale = 0, signs = 0;
  bool half_disabled = false;
};

void Compare(const Kind& kind, const Layout& la, const Layout& lb, const Variant& v, Isa isa = BestIsa()) {
  Input in;
  const auto lane_of = [&](uint32_t row) { return v.rows == 64 ? row / 16 * 32 + row % 16 : row; };
  for (uint32_t k = 0; k < kind.k; ++k) {
    for (uint32_t row = 0; row < v.rows; ++row) {
      const uint32_t e = kind.encode(ElementA(row, k));
      if (!v.tensor_a) std::memcpy(in.tile.data() + la.at(row, k, kind.bytes), &e, kind.bytes);
      auto* a = reinterpret_cast<uint8_t*>(in.a.data() + lane_of(row) * 8);
      if (v.tensor_a) std::memcpy(a + k * kind.bytes, &e, kind.bytes);
    }
    for (uint32_t column = 0; column < kColumns; ++column) {
      const uint32_t e = kind.encode(ElementB(column, k));
      std::memcpy(in.tile.data() + kTileB + lb.at(column, k, kind.bytes), &e, kind.bytes);
    }
  }
  for (uint32_t lane = 0; lane < 128; ++lane)
    for (uint32_t n = 0; n < kColumns; ++n) in.d[lane * kColumns + n] = kind.result(Before(lane, n));
  Call call{Descriptor(la, 0, kind.bytes), Descriptor(lb, kTileB, kind.bytes),
            InstructionOf(kind, v.rows, la.by_k && !v.tensor_a, lb.by_k) | v.signs << 13, kind.name};
  call.operands = std::string("[%r20], ") + (v.tensor_a ? "[%r20+16]" : "%rd5") + ", %rd6, %r21, " +
                  (v.half_disabled ? "{0, 0xffffffff, 0, 0x80000001}, " : "") + (v.add ? "1" : "0") +
                  (v.scale != 0 ? ", " + std::to_string(v.scale) : "");
  std::vector<uint32_t> got;
  const Outcome ran = RunMma(call, in, &got, isa);
  const std::string what = std::string(kind.name) + " " + la.name + ", " + lb.name + (v.tensor_a ? " tensor" : "");
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << what << ran.text;
  std::vector<double> wanted(128 * kColumns);
  for (uint32_t n = 0; n < wanted.size(); ++n) wanted[n] = Before(n / kColumns, n % kColumns);
  for (uint32_t row = 0; row < v.rows; ++row) {
    const uint32_t lane = lane_of(row);
    if (v.half_disabled && (lane / 32 == 1 || lane == 96 || lane == 127)) continue;
    for (uint32_t n = 0; n < kColumns; ++n) {
      double sum = v.add ? Before(lane, n) / (1 << v.scale) : 0;
      for (uint32_t k = 0; k < kind.k; ++k)
        sum += ElementA(row, k) * ElementB(n, k) * (v.signs == 1 || v.signs == 2 ? -1 : 1);
      wanted[lane * kColumns + n] = sum;
    }
  }
  for (uint32_t n = 0; n < wanted.size(); ++n)
    ASSERT_EQ(kind.from(got[n]), wanted[n]) << what << " lane " << n / kColumns << " column " << n % kColumns;
}

TEST(SoftTensorMma, ProductsOfEachKindAndLayout) {
  for (const Kind& kind : kKinds) {
    for (const Layout& a : kLayouts) {
      for (const Layout& b : kLayouts) {
        if (std::string_view(kind.name) == "tf32" && (a.by_k || b.by_k)) continue;
        for (const uint32_t rows : {64u, 128u}) Compare(kind, a, b, {.rows = rows});
      }
    }
  }
}

TEST(SoftTensorMma, VariantsOfTheInstruction) {
  const Layout& plain = kLayouts[0];
  for (const Kind& kind : kKinds) {
    Compare(kind, plain, plain, {.tensor_a = true});
    Compare(kind, plain, plain, {.rows = 64, .tensor_a = true});
    Compare(kind, plain, plain, {.add = false});
    Compare(kind, plain, plain, {.half_disabled = true});
    const std::string_view name = kind.name;
    if (name != "i8") {
      for (const uint32_t signs : {1u, 2u, 3u}) Compare(kind, plain, plain, {.signs = signs});
    }
    if (kind.type_d == 1 && name != "f8f6f4") Compare(kind, plain, plain, {.scale = 3});
  }
}

TEST(SoftTensorMma, AllInstructionSetsAgree) {
  for (const Isa isa : AvailableIsas())
    for (const Kind& kind : kKinds) Compare(kind, kLayouts[1], kLayouts[0], {}, isa);
}

TEST(SoftTensorMma, EachThreadThatAsksHasItsProduct) {
  Input in;
  const Kind& kind = kKinds[0];
  for (uint32_t line = 0; line < 128; ++line) {
    const uint32_t one = Half(1);
    std::memcpy(in.tile.data() + kLayouts[0].at(line, 0, 2), &one, 2);
    if (line < kColumns) std::memcpy(in.tile.data() + kTileB + kLayouts[0].at(line, 0, 2), &one, 2);
  }
  std::vector<uint32_t> got;
  Call call{Descriptor(kLayouts[0], 0), Descriptor(kLayouts[0], kTileB), InstructionOf(kind, 128, false, false), "f16"};
  call.lanes = "5";
  const Outcome ran = RunMma(call, in, &got);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(FloatOf(got[0]), 5.0f);
  EXPECT_EQ(FloatOf(got[127 * kColumns + 15]), 5.0f);
}

TEST(SoftTensorMma, SumsOfIntegersSaturateIfTheyShall) {
  Input in;
  const Kind& kind = kKinds[5];
  in.tile[0] = 127;
  in.tile[kTileB] = 127;
  in.d[0] = 0x7fffffff;
  Call call{Descriptor(kLayouts[0], 0), Descriptor(kLayouts[0], kTileB), InstructionOf(kind, 128, false, false), "i8"};
  std::vector<uint32_t> got;
  ASSERT_EQ(RunMma(call, in, &got).status, CuStatus::kSuccess);
  EXPECT_EQ(got[0], 0x7fffffffu + 127 * 127);
  call.descriptor |= 8;
  ASSERT_EQ(RunMma(call, in, &got).status, CuStatus::kSuccess);
  EXPECT_EQ(got[0], 0x7fffffffu);
}

TEST(SoftTensorMma, WhatIsWrongEndsTheContextWithASentence) {
  const Input in;
  const Kind& kind = kKinds[0];
  const uint64_t a = Descriptor(kLayouts[0], 0);
  const uint64_t b = Descriptor(kLayouts[0], kTileB);
  const uint32_t good = InstructionOf(kind, 128, false, false);
  const std::string usual = "[%r20], %rd5, %rd6, %r21, 1";
  struct Case {
    uint64_t a, b;
    uint32_t descriptor;
    std::string kind, operands;
    CuStatus status;
    const char* text;
  };
  const auto illegal = CuStatus::kIllegalInstruction;
  const auto address = CuStatus::kIllegalAddress;
  const uint32_t no_shape = good & ~(63u << 17 | 31u << 24);
  const Case cases[] = {
      {a, b, good, "f16", usual, CuStatus::kSuccess, ""},
      {Descriptor(kLayouts[0], 0x3fff0), b, good, "f16", usual, address, "matrix in shared memory"},
      {a, ~uint64_t{0} >> 12 & ~(uint64_t{7} << 61), good, "f16", usual, address, "matrix in shared memory"},
      {a | uint64_t{3} << 61, b, good, "f16", usual, illegal, "its swizzle mode"},
      {a, b | uint64_t{1} << 61, good, "f16", usual, illegal, "its swizzle mode"},
      {a, b | uint64_t{1} << 52, good, "f16", usual, illegal, "an absolute leading dimension"},
      {a, b, 0, "f16", usual, illegal, "M is 64 or 128"},
      {a, b, ~0u, "f16", usual, illegal, "a sparse A"},
      {a, b, good | 1u << 6, "f16", usual, illegal, "bits that there are not"},
      {a, b, no_shape | 2u << 17 | 2u << 24, "f16", usual, illegal, "M is 64 or 128"},
      {a, b, no_shape | 8u << 24, "f16", usual, illegal, "N is a number from 8 to 256"},
      {a, b, no_shape | 34u << 17 | 8u << 24, "f16", usual, illegal, "N is a number from 8 to 256"},
      {a, b, no_shape | 1u << 17 | 8u << 24, "f16", usual, illegal, "N is a multiple of 16"},
      {a, b, good | 2u << 7, "f16", usual, illegal, "this type of A or B"},
      {a, b, good | 1u << 5, "f16", usual, illegal, "this type of D"},
      {a, b, good | 8, "f16", usual, illegal, "saturation"},
      {a, b, good | 3u << 7, "f8f6f4", usual, illegal, "4 and 6 bits"},
      {a, b, InstructionOf(kKinds[3], 128, true, false), "tf32", usual, illegal, "transposed tf32"},
      {a, b, good | 1u << 15, "f16", "[%r20], [%r20+16], %rd6, %r21, 1", illegal, "is not transposed"},
      {a, b, good, "f16", "[%r20+20], %rd5, %rd6, %r21, 1", address, "not all of the 16 columns"},
      {a, b, good, "f16", "[%r20], [%r20+28], %rd6, %r21, 1", address, "not all of the 8 columns"},
      {a, b, good, "f16", "[%r20+65536], %rd5, %rd6, %r21, 1", address, "begins at lane 0"},
      {a, b, good, "f16", "[%r20], [%r20+1048576], %rd6, %r21, 1", address, "begins at lane 0"},
      {a, b, good, "f16", "[%r20-1], %rd5, %rd6, %r21, 1", address, "begins at lane 0"},
  };
  for (const Case& c : cases) {
    const Outcome ran = RunMma({c.a, c.b, c.descriptor, c.kind, c.operands}, in);
    EXPECT_EQ(ran.status, c.status) << c.kind << " " << std::hex << c.descriptor << c.operands << ran.text;
    EXPECT_THAT(ran.text, HasSubstr(c.text)) << std::hex << c.descriptor << c.operands;
  }
}

}  // namespace
}  // namespace vgpud::soft
