// SPDX-License-Identifier: Apache-2.0
// What variables of a module hold before anything runs.
#include <array>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

// "mask() initialisers" of the PTX ISA (Initializers): each takes one byte of an address.
constexpr const char* kMasks = R"(.version 7.8
.target sm_75
.address_size 64
.global .align 4 .u32 y[4];
.global .align 8 .u64 where = y;
.global .b8 bytes[8] = {0xFF(y), 0xFF00(y), 0xFF0000(y), 0xFF000000(y), 0xFF00000000(y), 0xFF0000000000(y),
  0xFF000000000000(y), 0xFF00000000000000(y)};
.global .b8 more[2] = {0xFF(generic(y)+74565), 0xFF00(generic(y)+74565)};
.global .u32 wide = 0xFF00(y+74565);
.visible .entry k() { ret; }
)";

TEST(SoftGlobals, AMaskTakesItsByteOfTheAddress) {
  SoftMachine m;
  const std::string text = kMasks;
  const auto module = m.gpu.Load(std::as_bytes(std::span(text.data(), text.size())));
  ASSERT_TRUE(module) << module.error().text;
  const auto read = [&](const char* name, auto* value) {
    const auto global = (*module)->FindGlobal(name);
    ASSERT_TRUE(global);
    ASSERT_TRUE(m.gpu.CopyOut(std::as_writable_bytes(std::span(value, 1)), global->address));
  };
  uint64_t where = 0, bytes = 0;
  read("where", &where);
  read("bytes", &bytes);
  EXPECT_EQ(where, Raw((*module)->FindGlobal("y")->address));
  EXPECT_EQ(where, bytes);
  const uint64_t sum = where + 74565;
  std::array<uint8_t, 2> more{};
  read("more", &more);
  EXPECT_EQ(sum & 0xff, more[0]);
  EXPECT_EQ(sum >> 8 & 0xff, more[1]);
  uint32_t wide = 0;
  read("wide", &wide);
  EXPECT_EQ(sum >> 8 & 0xff, wide);
}

}  // namespace
}  // namespace vgpud::soft
