// SPDX-License-Identifier: Apache-2.0
// wmma: every shape, type and layout against a plain product.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

struct Form {
  const char* shape;
  uint32_t m, n, k;
  const char* ab;  // type of A and B
  const char* c;   // type of C
  const char* d;
  uint32_t ra, rb, rc, rd;  // registers per fragment
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.shape << form.d << form.ab << form.c; }

// Only integers that every type holds exactly.
uint64_t Encode(const std::string& type, int value) {
  const auto v = static_cast<float>(value);
  if (type == "f64") return std::bit_cast<uint64_t>(static_cast<double>(value));
  if (type == "f32" || type == "tf32") return std::bit_cast<uint32_t>(v);
  if (type == "bf16") return std::bit_cast<uint32_t>(v) >> 16;
  if (type == "f16") return std::bit_cast<uint16_t>(static_cast<_Float16>(v));
  return static_cast<uint32_t>(value);
}
int Decode(const std::string& type, uint64_t bits) {
  if (type == "f64") return static_cast<int>(std::bit_cast<double>(bits));
  if (type == "f32") return static_cast<int>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (type == "f16") return static_cast<int>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  return static_cast<int32_t>(bits);
}
uint32_t BytesOf(const std::string& type) {
  if (type == "f64") return 8;
  if (type == "f16" || type == "bf16") return 2;
  return type == "s8" || type == "u8" ? 1 : 4;
}

std::string Registers(const std::string& name, uint32_t count) {
  std::string list = "{";
  for (uint32_t r = 0; r < count; ++r) list += (r == 0 ? "" : ", ") + name + std::to_string(r);
  return list + "}";
}

// A matrix in memory, `stride` elements from one row (or column) to the next.
std::vector<uint8_t> Pack(const std::string& type, const std::vector<int>& rows, uint32_t height, uint32_t width,
                          bool by_columns, uint32_t stride) {
  const uint32_t size = BytesOf(type);
  std::vector<uint8_t> bytes(static_cast<size_t>(stride) * (by_columns ? width : height) * size, 0xee);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const uint64_t v = Encode(type, rows[y * width + x]);
      std::memcpy(&bytes[(by_columns ? x * stride + y : y * stride + x) * size], &v, size);
    }
  }
  return bytes;
}

class SoftMatrix : public testing::TestWithParam<std::tuple<Isa, Form>> {};

TEST_P(SoftMatrix, IsTheProductInEveryLayout) {
  const auto& [isa, f] = GetParam();
  const bool only_floats_by_row = std::string(f.ab) == "f64";
  for (int layouts = 0; layouts < 8; ++layouts) {
    const bool a_columns = layouts & 1, b_columns = layouts & 2, c_columns = layouts & 4;
    if (only_floats_by_row && (a_columns || !b_columns)) continue;
    const auto layout = [](bool columns) { return columns ? ".col" : ".row"; };
    const std::string shape = std::string(".") + f.shape;
    const std::string types = std::string(f.ab) == "f16" ? std::string(".") + f.d + "." + f.c
                                                         : std::string(".") + f.d + "." + f.ab + "." + f.ab + "." + f.c;
    const std::string reg = BytesOf(f.d) == 8 ? ".f64" : ".b32";
    // A comes from shared memory with a stride, C without one, D goes out with one.
    const uint32_t sa = (a_columns ? f.m : f.k) + 8, sb = (b_columns ? f.k : f.n) + 16, sd = c_columns ? f.m : f.n;
    const std::string a_bytes = std::to_string(static_cast<size_t>(sa) * (a_columns ? f.k : f.m) * BytesOf(f.ab));
    const std::string body =
        ".reg " + reg + " %a<8>;\n.reg " + reg + " %b<8>;\n.reg " + reg + " %c<8>;\n.reg " + reg + " %d<8>;\n" +
        ".shared .align 32 .b8 tile[4096];\n" +
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [d];\n" +
        "mov.u32 %r1, %tid.x; mov.u32 %r2, tile;\n" + "COPY: setp.ge.u32 %p1, %r1, " + a_bytes +
        "; @%p1 bra COPIED;\n" +
        "cvt.u64.u32 %rd5, %r1; add.u64 %rd6, %rd1, %rd5; ld.global.u8 %rs1, [%rd6]; add.u32 %r3, %r2, %r1;\n" +
        "st.shared.u8 [%r3], %rs1; add.u32 %r1, %r1, 32; bra COPY;\nCOPIED: bar.sync 0;\n" + "mov.u32 %r4, " +
        std::to_string(sa) + "; mov.u32 %r5, " + std::to_string(sb) + ";\n" + "wmma.load.a.sync.aligned" +
        layout(a_columns) + shape + ".shared." + f.ab + " " + Registers("%a", f.ra) + ", [%r2], %r4;\n" +
        "wmma.load.b.sync.aligned" + layout(b_columns) + shape + ".global." + f.ab + " " + Registers("%b", f.rb) +
        ", [%rd2], %r5;\n" + "wmma.load.c.sync.aligned" + layout(c_columns) + shape + ".global." + f.c + " " +
        Registers("%c", f.rc) + ", [%rd3];\n" + "wmma.mma.sync.aligned" + layout(a_columns) + layout(b_columns) +
        shape + (only_floats_by_row ? ".rn" : "") + types + " " + Registers("%d", f.rd) + ", " + Registers("%a", f.ra) +
        ", " + Registers("%b", f.rb) + ", " + Registers("%c", f.rc) + ";\n" + "wmma.store.d.sync.aligned" +
        layout(c_columns) + shape + "." + f.d + " [%rd4], " + Registers("%d", f.rd) + ", " + std::to_string(sd) + ";";
    SoftMachine m(isa);
    const Outcome loaded = m.LoadBody(".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d", body);
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;

    std::vector<int> a(f.m * f.k), b(f.k * f.n), c(f.m * f.n);
    const bool is_signed = std::string(f.ab) != "u8";
    for (size_t n = 0; n < a.size(); ++n) a[n] = static_cast<int>(n * 7 % 13) - (is_signed ? 6 : 0);
    for (size_t n = 0; n < b.size(); ++n) b[n] = static_cast<int>(n * 5 % 11) - (is_signed ? 5 : 0);
    for (size_t n = 0; n < c.size(); ++n) c[n] = static_cast<int>(n * 3 % 101) - 50;
    const GpuVa at_a = m.Upload(Pack(f.ab, a, f.m, f.k, a_columns, sa));
    const GpuVa at_b = m.Upload(Pack(f.ab, b, f.k, f.n, b_columns, sb));
    const GpuVa at_c = m.Upload(Pack(f.c, c, f.m, f.n, c_columns, sd));
    const GpuVa at_d = m.Alloc(c.size() * 8);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(at_a).Add(at_b).Add(at_c).Add(at_d));
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    const uint32_t size = BytesOf(f.d);
    const auto out = m.Download<uint8_t>(at_d, c.size() * size);
    for (uint32_t y = 0; y < f.m; ++y) {
      for (uint32_t x = 0; x < f.n; ++x) {
        int expected = c[y * f.n + x];
        for (uint32_t k = 0; k < f.k; ++k) expected += a[y * f.k + k] * b[k * f.n + x];
        uint64_t bits = 0;
        std::memcpy(&bits, &out[(c_columns ? x * sd + y : y * sd + x) * size], size);
        ASSERT_EQ(Decode(f.d, bits), expected) << "layouts " << layouts << ", row " << y << ", column " << x;
      }
    }
  }
}

constexpr Form kForms[] = {
    {"m16n16k16", 16, 16, 16, "f16", "f32", "f32", 8, 8, 8, 8},
    {"m16n16k16", 16, 16, 16, "f16", "f16", "f16", 8, 8, 4, 4},
    {"m16n16k16", 16, 16, 16, "f16", "f16", "f32", 8, 8, 4, 8},
    {"m16n16k16", 16, 16, 16, "f16", "f32", "f16", 8, 8, 8, 4},
    {"m32n8k16", 32, 8, 16, "f16", "f32", "f32", 8, 8, 8, 8},
    {"m8n32k16", 8, 32, 16, "f16", "f32", "f32", 8, 8, 8, 8},
    {"m32n8k16", 32, 8, 16, "f16", "f16", "f16", 8, 8, 4, 4},
    {"m8n32k16", 8, 32, 16, "f16", "f16", "f16", 8, 8, 4, 4},
    {"m16n16k16", 16, 16, 16, "s8", "s32", "s32", 2, 2, 8, 8},
    {"m16n16k16", 16, 16, 16, "u8", "s32", "s32", 2, 2, 8, 8},
    {"m32n8k16", 32, 8, 16, "s8", "s32", "s32", 4, 1, 8, 8},
    {"m32n8k16", 32, 8, 16, "u8", "s32", "s32", 4, 1, 8, 8},
    {"m8n32k16", 8, 32, 16, "s8", "s32", "s32", 1, 4, 8, 8},
    {"m8n32k16", 8, 32, 16, "u8", "s32", "s32", 1, 4, 8, 8},
    {"m16n16k16", 16, 16, 16, "bf16", "f32", "f32", 4, 4, 8, 8},
    {"m32n8k16", 32, 8, 16, "bf16", "f32", "f32", 8, 2, 8, 8},
    {"m8n32k16", 8, 32, 16, "bf16", "f32", "f32", 2, 8, 8, 8},
    {"m16n16k8", 16, 16, 8, "tf32", "f32", "f32", 4, 4, 8, 8},
    {"m8n8k4", 8, 8, 4, "f64", "f64", "f64", 1, 1, 2, 2},
};
INSTANTIATE_TEST_SUITE_P(, SoftMatrix, testing::Combine(testing::ValuesIn(AvailableIsas()), testing::ValuesIn(kForms)),
                         [](const auto& p) {
                           const Form& f = std::get<1>(p.param);
                           return std::string(NameOf(std::get<0>(p.param))) + "_" + f.shape + "_" + f.d + "_" + f.ab +
                                  "_" + f.c;
                         });

TEST(SoftMatrixRules, SatfiniteClampsTheSum) {
  for (const char* satfinite : {".satfinite", ""}) {
    SoftMachine m;
    const std::string body =
        std::string("mov.u32 %r1, 0x01010101; mov.u32 %r2, 0x7ffffffe; ld.param.u64 %rd1, [out];\n") +
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32" + satfinite +
        " {%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}, {%r1, %r1}, {%r1, %r1}, "
        "{%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2};\nst.global.u32 [%rd1], %r3;";
    const Outcome loaded = m.LoadBody(".param .u64 out", body);
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const GpuVa out = m.Alloc(4);
    ASSERT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out)).status, CuStatus::kSuccess);
    EXPECT_EQ(m.Download<uint32_t>(out, 1)[0], *satfinite != 0 ? 0x7fffffffu : 0x7ffffffeu + 16);
  }
}

TEST(SoftMatrixRules, AMatrixOutsideOfMemoryIsAFault) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody("",
                       "mov.u64 %rd1, 4096;\nwmma.load.c.sync.aligned.row.m16n16k16.global.f32 "
                       "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];")
                .status,
            CuStatus::kSuccess);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params());
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(ran.text, HasSubstr("row"));
}

TEST(SoftMatrixRules, AFragmentOfTheWrongSizeIsNoInstruction) {
  SoftMachine m;
  const Outcome loaded = m.LoadBody("", "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2}, [%rd1];");
  EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(loaded.text, HasSubstr("2 registers instead of 8"));
}

TEST(SoftMatrixRules, RowsThatLdmatrixCannotReadAreFaults) {
  const struct {
    const char* address;
    CuStatus status;
  } kCases[] = {{"8", CuStatus::kMisalignedAddress}, {"4080", CuStatus::kSuccess}, {"4096", CuStatus::kIllegalAddress}};
  for (const auto& c : kCases) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", std::string(".shared .align 16 .b8 block[4096];\nmov.u32 %r1, ") + c.address +
                                              ";\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];");
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    EXPECT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params()).status, c.status) << c.address;
  }
}

TEST(SoftMatrixRules, WhatNoMmaHasIsNoInstruction) {
  for (const std::string name : {"m16n8k16.row.col.f32.f16.bf16.f32", "m16n8k12.row.col.f32.f16.f16.f32",
                                 "m16n8k16.row.col.nonsense.f32.f16.f16.f32"}) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody(
        "", "mma.sync.aligned." + name + " {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};");
    EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
    EXPECT_NE(loaded.text.find(name), std::string::npos) << loaded.text;
  }
}

}  // namespace
}  // namespace vgpud::soft
