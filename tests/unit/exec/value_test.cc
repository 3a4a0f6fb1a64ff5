// SPDX-License-Identifier: Apache-2.0
// Streams that wait for words in memory and write them; names of a module's kernels; memory that is mapped later.
#include <cstring>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint32_t kInvalid = 1, kInvalidHandle = 400;

struct Values : ExecRig {
  Values() {
    Grant();
    word = Alloc(64);
    EXPECT_EQ(0u, Status(guest.Submit({VGPU_OP_FILL, {word, 0, 4, 16}})));
    for (const uint64_t id : {16, 17})
      EXPECT_EQ(0u, Status(guest.Submit({VGPU_OP_STREAM_CREATE, {id, VGPU_STREAM_NON_BLOCKING}})));
  }
  uint64_t Wait(uint64_t value, uint64_t bytes = 4, uint64_t condition = VGPU_WAIT_EQ, uint32_t stream = 16) {
    return guest.Submit({VGPU_OP_WAIT_VALUE, {word, value, bytes, condition}, stream});
  }
  uint64_t Write(uint64_t value, uint64_t bytes = 4, uint32_t stream = 17) {
    return guest.Submit({VGPU_OP_WRITE_VALUE, {word, value, bytes}, stream});
  }
  uint64_t Word() {
    const auto out = guest.Take(8);
    EXPECT_EQ(0u, Status(guest.Submit({VGPU_OP_COPY_OUT, {word}, 17, out})));
    uint64_t value;
    std::memcpy(&value, out.at, 8);
    return value;
  }
  uint64_t word = 0;
};

TEST(Value, AWordIsWrittenInItsTurnAndInItsSize) {
  Values rig;
  EXPECT_EQ(0u, rig.Status(rig.Write(0x1122334455667788, 8)));
  EXPECT_EQ(0x1122334455667788u, rig.Word());
  EXPECT_EQ(0u, rig.Status(rig.Write(7, 4)));
  EXPECT_EQ(0x1122334400000007u, rig.Word());
}

struct Condition {
  const char* name;
  uint64_t condition, bytes, value, closed, open;
};
TEST(Value, AStreamWaitsUntilTheWordIsAsItWants) {
  const Condition conditions[] = {
      {"equal", VGPU_WAIT_EQ, 4, 7, 8, 7},
      {"equal_wide", VGPU_WAIT_EQ, 8, uint64_t{7} << 40, 7, uint64_t{7} << 40},
      {"at_least", VGPU_WAIT_GEQ, 4, 5, 4, 6},
      {"at_least_signed_difference", VGPU_WAIT_GEQ, 4, 5, 0xffffffff, 5},
      {"at_least_around_the_end", VGPU_WAIT_GEQ, 4, 0xfffffff0, 0xffffffef, 3},
      {"at_least_wide", VGPU_WAIT_GEQ, 8, 5, ~uint64_t{0}, uint64_t{1} << 62},
      {"a_bit", VGPU_WAIT_AND, 4, 6, 9, 2},
      {"a_high_bit", VGPU_WAIT_AND, 8, uint64_t{1} << 63, 1, ~uint64_t{0}},
      {"not_all", VGPU_WAIT_NOR, 4, 0xffff0000, 0xffff, 0xfff0},
      {"not_all_wide", VGPU_WAIT_NOR, 8, 0xffffffff, ~uint64_t{0} << 32, ~uint64_t{0} << 33},
  };
  for (const Condition& c : conditions) {
    Values rig;
    EXPECT_EQ(0u, rig.Status(rig.Write(c.closed, c.bytes)));
    const uint64_t waits = rig.Wait(c.value, c.bytes, c.condition);
    rig.Settle();
    EXPECT_TRUE(rig.Pending(waits)) << c.name;
    EXPECT_TRUE(rig.exec->engine()->WaitsForValues()) << c.name;
    EXPECT_EQ(ExecState::kIdle, rig.state()) << c.name << ": it needs no GPU";
    EXPECT_EQ(0u, rig.Status(rig.Write(c.open, c.bytes))) << c.name;
    EXPECT_EQ(0u, rig.Status(waits)) << c.name;
    EXPECT_FALSE(rig.exec->engine()->WaitsForValues()) << c.name;
  }
}

TEST(Value, OnlyItsStreamWaits) {
  Values rig;
  const uint64_t kernel = rig.Kernel("a");
  rig.script->log.clear();
  const uint64_t waits = rig.Wait(1);
  const uint64_t behind = rig.guest.Launch(kernel, 16);
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(kernel, 17)));
  EXPECT_EQ(1u, rig.script->log.size());
  EXPECT_TRUE(rig.Pending(waits));
  rig.Write(1);
  EXPECT_EQ(0u, rig.Status(behind));
  EXPECT_EQ(2u, rig.script->log.size());
}

TEST(Value, WhatCannotBeAWordIsRefused) {
  Values rig;
  const struct {
    uint64_t address, value, bytes, condition;
  } rows[] = {{rig.word, 0, 2, 0},
              {rig.word, 0, 0, 0},
              {rig.word, 0, 16, 0},
              {rig.word, 1ull << 32, 4, 0},
              {rig.word, 0, 4, 4},
              {rig.word, 0, 4, UINT64_MAX},
              {0, 0, 4, 0},
              {rig.word + 60, 0, 8, 0},
              {rig.word - 4, 0, 4, 0},
              {UINT64_MAX - 3, 0, 4, 0},
              {rig.word, 0, 0x100000004, 0},
              {0x1000, 0, 8, 0}};
  for (const auto& row : rows) {
    EXPECT_EQ(
        kInvalid,
        rig.Status(rig.guest.Submit({VGPU_OP_WAIT_VALUE, {row.address, row.value, row.bytes, row.condition}, 16})))
        << row.address << " " << row.value << " " << row.bytes << " " << row.condition;
    if (row.condition != 0) continue;
    EXPECT_EQ(kInvalid, rig.Status(rig.guest.Submit({VGPU_OP_WRITE_VALUE, {row.address, row.value, row.bytes}, 16})))
        << row.address << " " << row.value << " " << row.bytes;
  }
  EXPECT_EQ(kInvalidHandle, rig.Status(rig.Wait(0, 4, VGPU_WAIT_EQ, 99)));
  EXPECT_FALSE(rig.exec->engine()->WaitsForValues());
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Value, MemoryThatGoesAwayEndsTheWait) {
  Values rig;
  const uint64_t waits = rig.Wait(1);
  rig.Settle();
  EXPECT_TRUE(rig.Pending(waits));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
  EXPECT_NE(0u, rig.Status(waits));
  EXPECT_FALSE(rig.exec->engine()->WaitsForValues());
}

TEST(FunctionNames, EachKernelIsNamedOnce) {
  ExecRig rig;
  rig.Grant();
  EXPECT_EQ(0u, rig.Load(1, "kernel one 1\nkernel two 1\n").status);
  const auto name = [&](uint64_t index, uint64_t room = 16) {
    const auto out = rig.guest.Take(static_cast<uint32_t>(room));
    const vgpu_cqe done = rig.Done(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION_NAME, {1, index}, 0, out}));
    EXPECT_EQ(0u, done.status);
    EXPECT_EQ(2u, done.value[0]);
    return std::string(reinterpret_cast<const char*>(out.at), std::min<uint64_t>(done.value[1], room));
  };
  EXPECT_EQ("one", name(0));
  EXPECT_EQ("two", name(1));
  EXPECT_EQ("tw", name(1, 2));
  EXPECT_EQ("", name(2));
  EXPECT_EQ("", name(UINT64_MAX));
  EXPECT_EQ(kInvalidHandle,
            rig.Status(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION_NAME, {2, 0}, 0, rig.guest.Take(16)})));
  EXPECT_EQ(0u, rig.guest.sticky());
}

constexpr uint64_t kGrain = VGPU_MAPPED_GRAIN;

TEST(MappedMemory, CountsAsTheVfsVram) {
  ExecRig rig;
  rig.Grant();
  rig.vf_quota = 8 * kGrain;
  const auto create = [&](uint64_t bytes) { return rig.Done(rig.guest.Submit({VGPU_OP_MEM_CREATE, {bytes}})); };
  const auto release = [&](uint64_t number) { return rig.Status(rig.guest.Submit({VGPU_OP_MEM_RELEASE, {number}})); };
  const uint64_t number = create(6 * kGrain).value[0];
  EXPECT_LE(6 * kGrain, rig.vf_used);
  EXPECT_EQ(2u, create(4 * kGrain).status) << "out of memory";
  EXPECT_EQ("MEM_CREATE: 8388608 bytes exceed the VF's VRAM", rig.error_text());
  EXPECT_EQ(0u, release(number));
  EXPECT_EQ(kInvalidHandle, release(number));
  EXPECT_EQ(0u, create(8 * kGrain).status);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, kGrain + 1, UINT64_MAX})
    EXPECT_EQ(kInvalid, create(bytes).status) << bytes;
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(MappedMemory, ItGoesWhenTheWorkBeforeItIsDone) {
  ExecRig rig;
  rig.Grant();
  const uint64_t number = rig.Done(rig.guest.Submit({VGPU_OP_MEM_CREATE, {kGrain}})).value[0];
  const uint64_t kernel = rig.Kernel("a");
  rig.script->log.clear();
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_MEM_MAP, {number, 0, VGPU_MAPPED_VA, kGrain}})));
  rig.Revoke();
  rig.guest.Launch(kernel, 0);
  const uint64_t unmap = rig.guest.Submit({VGPU_OP_MEM_UNMAP, {VGPU_MAPPED_VA, kGrain}});
  rig.Settle();
  EXPECT_TRUE(rig.Pending(unmap));
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(unmap));
  const std::string at = std::to_string(VGPU_MAPPED_VA), bytes = std::to_string(kGrain);
  EXPECT_EQ((std::vector<std::string>{"map 1 0 " + at + " " + bytes, "a", "unmap " + at + " " + bytes}),
            rig.script->log);
  EXPECT_EQ(kInvalidHandle, rig.Status(rig.guest.Submit({VGPU_OP_MEM_MAP, {99, 0, VGPU_MAPPED_VA, kGrain}})));
}

}  // namespace
}  // namespace vgpud::exec
