// SPDX-License-Identifier: Apache-2.0
// The table of operations against the one in vgpu_abi.h, and the form that each asks of an entry.
#include "gpu/exec/channel/op_table.h"

#include <gtest/gtest.h>

namespace vgpud::exec {
namespace {

using enum PayloadRule;

enum Is : uint32_t { kGpu = 1, kExclusive = 2, kDrain = 4, kKeeps = 8, kAfterFault = 16, kUnlocks = 32 };

struct Row {
  uint32_t code;
  const char* name;
  uint8_t args;
  PayloadRule payload;
  uint32_t is;
  uint32_t payload_least = 0;
};
constexpr Row kRows[] = {
    {0, "NOP", 0, kNone, 0},
    {1, "MEM_ALLOC", 1, kNone, kExclusive | kKeeps},
    {2, "MEM_FREE", 1, kNone, kExclusive | kDrain},
    {3, "MEM_INFO", 0, kNone, 0},
    {4, "MODULE_BEGIN", 2, kNone, kKeeps},
    {5, "MODULE_DATA", 2, kRequired, kUnlocks},
    {6, "MODULE_LOAD", 3, kNone, kExclusive | kKeeps},
    {7, "MODULE_UNLOAD", 1, kNone, kExclusive | kDrain},
    {8, "MODULE_FUNCTION", 2, kRequired, kExclusive | kKeeps},
    {9, "MODULE_GLOBAL", 1, kRequired, kExclusive},
    {10, "FUNCTION_SET", 3, kNone, kExclusive},
    {11, "STREAM_CREATE", 3, kNone, kKeeps},
    {12, "STREAM_DESTROY", 1, kNone, 0},
    {13, "LAUNCH", 1, kRequired, kGpu | kKeeps, 40},
    {14, "COPY_IN", 1, kOptional, kGpu | kKeeps},
    {15, "COPY_OUT", 1, kOptional, kGpu | kKeeps},
    {16, "COPY_DEV", 3, kNone, kGpu | kKeeps},
    {17, "BUF_IN", 4, kNone, kGpu | kKeeps},
    {18, "BUF_OUT", 4, kNone, kGpu | kKeeps},
    {19, "FILL", 4, kNone, kGpu | kKeeps},
    {20, "EVENT_RECORD", 2, kNone, kKeeps},
    {21, "EVENT_WAIT", 2, kNone, kKeeps},
    {22, "STREAM_SYNC", 0, kNone, kKeeps},
    {23, "CONTEXT_SYNC", 0, kNone, 0},
    {24, "CONTEXT_RESET", 0, kNone, kExclusive | kAfterFault},
    {25, "DEVICE_INFO", 0, kRequired, kExclusive, 1160},
    {26, "GATE_WAIT", 2, kNone, kKeeps},
    {27, "LIMIT_SET", 2, kNone, kExclusive},
    {28, "PRINT_READ", 0, kRequired, kExclusive | kAfterFault},
    {29, "TEXTURE_CREATE", 0, kRequired, kExclusive | kKeeps, 80},
    {30, "TEXTURE_DESTROY", 1, kNone, kExclusive | kDrain},
    {31, "STREAM_QUERY", 1, kNone, 0},
    {32, "BUF_ADDRESS", 1, kNone, kExclusive},
    {33, "WAIT_VALUE", 4, kNone, kKeeps},
    {34, "WRITE_VALUE", 3, kNone, kGpu | kKeeps},
    {35, "MODULE_FUNCTION_NAME", 2, kRequired, kExclusive},
    {36, "MEM_CREATE", 1, kNone, kExclusive | kKeeps},
    {37, "MEM_RELEASE", 1, kNone, kExclusive},
    {38, "MEM_MAP", 4, kNone, kExclusive | kKeeps},
    {39, "MEM_UNMAP", 2, kNone, kExclusive | kDrain},
    {40, "TENSOR_MAP", 0, kRequired, kExclusive, 304},
};

TEST(OpTable, HasTheRowsOfTheAbi) {
  ASSERT_EQ(VGPU_OP_COUNT, std::size(kRows));
  for (const Row& row : kRows) {
    const OpRow* op = FindOp(row.code);
    ASSERT_NE(nullptr, op) << row.name;
    EXPECT_EQ(row.code, op->code);
    EXPECT_STREQ(row.name, op->name);
    EXPECT_EQ(row.args, op->rules.args) << row.name;
    EXPECT_EQ(row.payload, op->rules.payload) << row.name;
    EXPECT_EQ(row.payload_least, op->rules.payload_least) << row.name;
    EXPECT_EQ((row.is & kGpu) != 0, op->step != nullptr) << row.name;
    EXPECT_EQ((row.is & kExclusive) != 0, op->rules.exclusive) << row.name;
    EXPECT_EQ((row.is & kDrain) != 0, op->rules.needs_drain) << row.name;
    EXPECT_EQ((row.is & kKeeps) != 0, op->rules.keeps) << row.name;
    EXPECT_EQ((row.is & kAfterFault) != 0, op->rules.after_fault) << row.name;
    EXPECT_EQ((row.is & kUnlocks) != 0, op->rules.unlocks) << row.name;
    EXPECT_TRUE(op->handler != nullptr) << row.name;
  }
  EXPECT_EQ(nullptr, FindOp(VGPU_OP_COUNT));
  EXPECT_EQ(nullptr, FindOp(~0u));
}

TEST(OpForm, EachArgumentThatMeansNothingIsZero) {
  for (const Row& row : kRows) {
    for (unsigned arg = 0; arg < 4; ++arg) {
      vgpu_sqe entry{};
      entry.op = row.code;
      entry.payload_len = row.payload == kRequired ? 1 : 0;
      EXPECT_EQ(std::nullopt, CheckForm(entry)) << row.name;
      entry.args[arg] = 1;
      EXPECT_EQ(arg < row.args, CheckForm(entry) == std::nullopt) << row.name << arg;
    }
  }
}

TEST(OpForm, APayloadIsThereWhereItMustBeAndNowhereElse) {
  for (const Row& row : kRows) {
    vgpu_sqe entry{};
    entry.op = row.code;
    EXPECT_EQ(row.payload != kRequired, CheckForm(entry) == std::nullopt) << row.name;
    entry.payload_len = 1;
    EXPECT_EQ(row.payload != kNone, CheckForm(entry) == std::nullopt) << row.name;
  }
}

TEST(OpForm, FlagsThatThereAreNotAreRefused) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    vgpu_sqe entry{};
    entry.flags = 1u << bit;
    EXPECT_EQ(bit == 0, CheckForm(entry) == std::nullopt) << bit;
  }
}

TEST(OpForm, WhatIsWrongIsNamed) {
  vgpu_sqe entry{};
  entry.seqno = 7;
  entry.args[3] = 0x10;
  EXPECT_EQ("submission 7 (NOP): args[3] must be zero, is 0x10", CheckForm(entry));
  entry.op = 99;
  EXPECT_EQ("submission 7: unknown op 99", CheckForm(entry));
  EXPECT_FALSE((RingEntry{.sqe = entry, .span = {}}.want()));
  entry.flags = VGPU_SQE_WANT_COMPLETION;
  EXPECT_TRUE((RingEntry{.sqe = entry, .span = {}}.want()));
}

}  // namespace
}  // namespace vgpud::exec
