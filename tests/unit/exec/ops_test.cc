// SPDX-License-Identifier: Apache-2.0
// Each operation at the edges of what it takes: sizes, ranges, handles, and the status beyond them (CUresult).
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint32_t kInvalid = 1, kInvalidHandle = 400;

// Of a submission that is answered.
struct Ops : ExecRig {
  explicit Ops(uint64_t payload_bytes = 0x200000) : ExecRig(payload_bytes) { Grant(); }
  uint32_t Do(uint32_t op, std::vector<uint64_t> args, TestGuest::Payload payload = {}, uint32_t stream = 0) {
    return Status(guest.Submit({op, std::move(args), stream, payload}));
  }
};

TEST(StreamOps, IdsAndFlags) {
  Ops rig;
  const struct {
    uint64_t id, flags;
    uint32_t status;
  } kCreate[] = {{15, 0, 1}, {0, 0, 1},  {2, 0, 1},  {16, 0, 0},         {16, 0, 1},          {17, 1, 0},
                 {18, 2, 1}, {18, 3, 1}, {18, 0, 0}, {0xffffffff, 0, 0}, {0x100000020, 0, 1}, {UINT64_MAX, 0, 1}};
  for (const auto& row : kCreate)
    EXPECT_EQ(row.status, rig.Do(VGPU_OP_STREAM_CREATE, {row.id, row.flags, 0})) << row.id << " " << row.flags;
  for (const uint64_t none : {uint64_t{0}, uint64_t{2}, uint64_t{15}, uint64_t{19}, uint64_t{0x100000010}, UINT64_MAX})
    EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_STREAM_DESTROY, {none})) << none;
  for (const uint64_t id : {uint64_t{16}, uint64_t{0xffffffff}}) {
    EXPECT_EQ(0u, rig.Do(VGPU_OP_STREAM_DESTROY, {id})) << id;
    EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_STREAM_DESTROY, {id})) << id;
  }
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(StreamOps, OneTooManyIsRefusedAsWhatItIs) {
  Ops rig;
  constexpr uint32_t kMost = Streams::kMaxStreams - 2;  // beside the default streams
  for (uint32_t id = 16; id < 16 + kMost; ++id) {
    const auto done = rig.Done(rig.guest.Submit({VGPU_OP_STREAM_CREATE, {id, 0, 0}}));
    ASSERT_EQ(0u, done.status) << id;
    ASSERT_EQ(id, done.value[0]) << "the answer to an older posted error is told apart by it";
  }
  const auto refused = rig.Done(rig.guest.Submit({VGPU_OP_STREAM_CREATE, {50'000, 0, 0}}));
  EXPECT_EQ(static_cast<uint32_t>(CuStatus::kOutOfMemory), refused.status);
  EXPECT_EQ(0u, refused.value[0]);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_STREAM_DESTROY, {16}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_STREAM_CREATE, {50'000, 0, 0}));
}

TEST(StreamOps, AStreamThatDoesNotExistIsNamed) {
  Ops rig;
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_STREAM_SYNC, {}, {}, 33));
  EXPECT_EQ("STREAM_SYNC: no stream 33", rig.error_text());
}

TEST(FillOps, ElementsHaveOneTwoOrFourBytes) {
  Ops rig;
  const uint64_t address = rig.Alloc(64);
  const auto bytes = [&] {
    const auto out = rig.guest.Take(8);
    EXPECT_EQ(0u, rig.Do(VGPU_OP_COPY_OUT, {address}, out));
    return std::string(reinterpret_cast<const char*>(out.at), 8);
  };
  for (const uint64_t element : {0, 3, 5, 8}) EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FILL, {address, 1, element, 1}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {address, 'a', 1, 8}));
  EXPECT_EQ("aaaaaaaa", bytes());
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {address, 0x6362, 2, 2}));
  EXPECT_EQ("bcbcaaaa", bytes());
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {address + 4, 0xffffffff, 4, 1}));
  EXPECT_EQ(std::string("bcbc") + std::string(4, '\xff'), bytes());
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FILL, {address, 0x100000000, 4, 1}));
  EXPECT_NE(std::string::npos, rig.error_text().find("FILL: value 0x100000000, 1 elements of 4 bytes"));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FILL, {address, 0, 4, uint64_t{1} << 48}));
  EXPECT_NE(std::string::npos, rig.error_text().find("not inside one allocation")) << rig.error_text();
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FILL, {address, 0, 4, (uint64_t{1} << 48) + 1}));
  EXPECT_NE(std::string::npos, rig.error_text().find("FILL: value")) << rig.error_text();
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {address, 0, 4, 16}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FILL, {address, 0, 4, 17}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {0xdead, 0, 4, 0})) << "nothing is anywhere";
}

TEST(CopyOps, LongFillsAndCopiesAreWholeWhereverTheirPartsEnd) {
  Ops rig;
  constexpr uint64_t kBytes = 3 * 65'536 + 4;
  const uint64_t from = rig.Alloc(kBytes), to = rig.Alloc(kBytes);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {from, 0x01020304, 4, kBytes / 4}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FILL, {from + kBytes - 4, 0x05060708, 4, 1}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_COPY_DEV, {to, from, kBytes}));
  const auto out = rig.guest.Take(kBytes);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_COPY_OUT, {to}, out));
  uint32_t first, inner, last;
  std::memcpy(&first, out.at, 4);
  std::memcpy(&inner, out.at + 2 * 65'536, 4);
  std::memcpy(&last, out.at + kBytes - 4, 4);
  EXPECT_EQ(0x01020304u, first);
  EXPECT_EQ(0x01020304u, inner);
  EXPECT_EQ(0x05060708u, last);
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_COPY_DEV, {to + 1, from, kBytes}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_COPY_DEV, {to, from + 1, kBytes}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_COPY_DEV, {0xdead, 0xbeef, 0}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_COPY_IN, {0xdead}));
}

TEST(CopyOps, UpTo4096BytesAreCopiedOutOfThePayloadAtOnce) {
  for (const uint32_t bytes : {4'096u, 4'097u}) {
    Ops rig;
    const uint64_t address = rig.Alloc(8'192);
    rig.Revoke();
    const auto payload = rig.guest.Take(bytes);
    rig.guest.Submit({VGPU_OP_COPY_IN, {address}, 0, payload});
    rig.Settle();
    EXPECT_EQ(bytes == 4'096 ? payload.position + bytes : payload.position, rig.guest.released()) << bytes;
  }
}

std::string LaunchBytes(uint32_t flags, uint32_t cluster, uint32_t param_bytes, size_t follow) {
  vgpu_launch launch{{1, 1, 1}, {1, 1, 1}, 0, param_bytes, flags, cluster};
  std::string bytes(sizeof launch + follow, '\0');
  std::memcpy(bytes.data(), &launch, sizeof launch);
  return bytes;
}

TEST(LaunchOps, FlagsAndParameters) {
  Ops rig;
  const uint64_t a = rig.Kernel("a");
  const struct {
    uint32_t flags, cluster, param_bytes;
    size_t follow;
    uint32_t status;
  } kRows[] = {{0, 0, 0, 0, 0},           {1, 0, 8, 8, 0},          {2, 0, 8, 8, 1},
               {3, 0, 8, 8, 1},           {0, 0x010101, 8, 8, 0},   {0, 1 << 24, 8, 8, 1},
               {0, 0, 8, 7, 1},           {0, 0, 8, 9, 0},          {0, 0, 32'764, 32'764, 0},
               {0, 0, 32'765, 40'000, 1}, {0, 0, 0xffffffff, 8, 1}, {0x80000000, 0, 8, 8, 1}};
  for (const auto& row : kRows)
    EXPECT_EQ(row.status, rig.Do(VGPU_OP_LAUNCH, {a},
                                 rig.guest.Take(LaunchBytes(row.flags, row.cluster, row.param_bytes, row.follow))))
        << row.flags << " " << row.cluster << " " << row.param_bytes << " " << row.follow;
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_LAUNCH, {a + 99}, rig.guest.Take(LaunchBytes(0, 0, 0, 0))));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(LaunchOps, DynamicSharedMemoryIsBoundedByTheFunctionsOwn) {
  Ops rig;
  const uint64_t a = rig.Kernel("a");
  const auto launch = [&](uint32_t shared) {
    vgpu_launch shape{{1, 1, 1}, {1, 1, 1}, shared, 0, 0, 0};
    return rig.Do(VGPU_OP_LAUNCH, {a}, rig.guest.Take({reinterpret_cast<const char*>(&shape), sizeof shape}));
  };
  EXPECT_EQ(0u, launch(49'152));
  EXPECT_NE(0u, launch(49'153));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FUNCTION_SET, {a, 8, 65'536}));
  EXPECT_EQ(0u, launch(65'536));
  EXPECT_NE(0u, launch(65'537));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FUNCTION_SET, {a, 8, 0}));
  EXPECT_NE(0u, launch(1));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_FUNCTION_SET, {a, 9, 123'456'789})) << "a hint";
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FUNCTION_SET, {a, 7, 0}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_FUNCTION_SET, {a, 10, 0}));
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_FUNCTION_SET, {a + 99, 8, 0}));
}

TEST(EventOps, SlotsAndGenerations) {
  Ops rig;
  EXPECT_EQ(0u, rig.Do(VGPU_OP_EVENT_RECORD, {VGPU_EVENT_SLOTS - 1, 5}));
  EXPECT_EQ(5u, rig.guest.Event(VGPU_EVENT_SLOTS - 1).generation);
  EXPECT_EQ(1000u, rig.guest.Event(VGPU_EVENT_SLOTS - 1).timestamp_ns);
  EXPECT_EQ(0u, rig.guest.Event(VGPU_EVENT_SLOTS - 2).generation);
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_EVENT_RECORD, {VGPU_EVENT_SLOTS, 5}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_EVENT_RECORD, {0, 0}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_EVENT_WAIT, {VGPU_EVENT_SLOTS - 1, 5}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_EVENT_WAIT, {VGPU_EVENT_SLOTS - 1, 4}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_EVENT_WAIT, {VGPU_EVENT_SLOTS - 1, 6}));
  EXPECT_NE(std::string::npos, rig.error_text().find("has not been recorded")) << rig.error_text();
  EXPECT_EQ(0u, rig.Do(VGPU_OP_EVENT_RECORD, {VGPU_EVENT_SLOTS - 1, 3}));
  EXPECT_EQ(5u, rig.guest.Event(VGPU_EVENT_SLOTS - 1).generation) << "it never goes back";
}

TEST(GateOps, ThereAre256AndThoseOfEventSlots) {
  Ops rig;
  constexpr uint32_t kLast = VGPU_EVENT_SLOTS - 1;
  rig.guest.header().gate[255] = 1;
  EXPECT_EQ(0u, rig.Do(VGPU_OP_GATE_WAIT, {255, 1}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_GATE_WAIT, {255, 0}));
  rig.guest.OpenSlot(0, 1);
  rig.guest.OpenSlot(kLast, 7);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_GATE_WAIT, {VGPU_SLOT_GATE(0), 1}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_GATE_WAIT, {VGPU_SLOT_GATE(kLast), 7}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_EVENT_RECORD, {kLast, 8}));
  EXPECT_EQ(8u, rig.guest.Event(kLast).generation) << "the slot is an event's again";
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_GATE_WAIT, {VGPU_SLOT_GATE(kLast), 0}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_GATE_WAIT, {VGPU_SLOT_GATE(VGPU_EVENT_SLOTS), 1}));
}

TEST(LimitOps, EachKindHasItsMost) {
  Ops rig;
  EXPECT_EQ(0u, rig.Do(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_PRINTF_FIFO, 1 << 20}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, rig.vf_quota}));
  EXPECT_EQ(rig.vf_quota, rig.script->heap);
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_MALLOC_HEAP, rig.vf_quota + 1}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_LIMIT_SET, {0, 1}));
  EXPECT_EQ(801u, rig.Do(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_VRAM_PART, 1})) << "addresses that it can't choose";
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_LIMIT_SET, {VGPU_LIMIT_VRAM_PART + 1, 1}));
  ExecRig small(0x200000, 32 << 20);
  EXPECT_EQ(0u, small.Status(small.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_PRINTF_FIFO, 32 << 20}})));
  EXPECT_EQ(2u, small.Status(small.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_PRINTF_FIFO, (32 << 20) + 1}})));
}

TEST(ModuleOps, NamesAndHandles) {
  Ops rig;
  rig.Load(7, "kernel k 3\nkernel l 3\nglobal g 4096\n");
  const uint64_t k = rig.Function(7, "k"), l = rig.Function(7, "l");
  EXPECT_EQ(1u, k);
  EXPECT_EQ(2u, l);
  const uint32_t answer = sizeof(vgpu_function_info) + sizeof(vgpu_param);
  const auto function = [&](uint64_t module, uint64_t name_bytes, uint32_t payload_bytes) {
    const auto payload = rig.guest.Take(payload_bytes);
    std::memset(payload.at, 0, payload_bytes);
    payload.at[0] = std::byte{'k'};
    return rig.Do(VGPU_OP_MODULE_FUNCTION, {module, name_bytes}, payload);
  };
  EXPECT_EQ(0u, function(7, 1, answer));
  EXPECT_EQ(kInvalid, function(7, 1, answer - 1));
  EXPECT_EQ(500u, function(7, answer, answer)) << "the name may fill the payload";
  EXPECT_EQ(kInvalid, function(7, answer + 1, answer));
  EXPECT_EQ(kInvalidHandle, function(8, 1, answer));
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_MODULE_GLOBAL, {8}, rig.guest.Take("g")));
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_MODULE_UNLOAD, {8}));
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_MODULE_DATA, {7, 0}, rig.guest.Take("g"))) << "it is loaded already";
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_MODULE_BEGIN, {7, 16}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MODULE_UNLOAD, {7}));
  EXPECT_EQ(kInvalidHandle, rig.Do(VGPU_OP_FUNCTION_SET, {l, 8, 0})) << "its functions are gone with it";
}

TEST(ModuleOps, AFunctionsAnswerIsWholeAndInOrder) {
  Ops rig;
  rig.Load(1, "kernel k 3\n");
  const auto payload = rig.guest.Take(256);
  std::memset(payload.at, 0xee, 256);
  payload.at[0] = std::byte{'k'};
  const vgpu_cqe done = rig.Done(rig.guest.Submit({VGPU_OP_MODULE_FUNCTION, {1, 1}, 0, payload}));
  EXPECT_EQ(56u, done.value[1]);
  uint32_t words[14];
  std::memcpy(words, payload.at, sizeof words);
  const uint32_t expected[] = {1, 8, 0, 0, 0, 1, 1024, 49'152, 75, 75, 0, 0, 0, 8};
  for (size_t i = 0; i < 14; ++i) EXPECT_EQ(expected[i], words[i]) << i;
  EXPECT_EQ(std::byte{0xee}, payload.at[56]) << "and no longer";
}

TEST(ModuleOps, AllUploadsTogetherHave512MiB) {
  Ops rig;
  constexpr uint64_t kMost = uint64_t{512} << 20;
  EXPECT_EQ(kMost, Modules::kMaxImageBytes);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MODULE_BEGIN, {1, kMost - 4'096}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_MODULE_BEGIN, {2, 4'097}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MODULE_BEGIN, {2, 4'096}));
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_MODULE_BEGIN, {3, 1}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MODULE_UNLOAD, {1}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MODULE_BEGIN, {3, kMost - 4'096}));
  EXPECT_EQ(218u, rig.Do(VGPU_OP_MODULE_LOAD, {2})) << "zeros are no image";
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MODULE_BEGIN, {2, 4'096})) << "what failed takes no place";
}

TEST(ContextOps, AResetOfAHealthyContextBeginsAnew) {
  Ops rig;
  const uint64_t address = rig.Alloc(4096);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_STREAM_CREATE, {16, 0, 0}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_CONTEXT_RESET, {}));
  EXPECT_EQ(0u, rig.Do(VGPU_OP_STREAM_CREATE, {16, 0, 0})) << "streams are gone";
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_MEM_FREE, {address})) << "and memory";
  EXPECT_EQ(0u, rig.vf_used);
}

TEST(DeviceOps, TheAnswerIsZeroWhereNothingIsKnown) {
  Ops rig;
  const auto payload = rig.guest.Take(1160);
  std::memset(payload.at, 0xee, payload.length);
  EXPECT_EQ(0u, rig.Do(VGPU_OP_DEVICE_INFO, {}, payload));
  vgpu_device_info info;
  std::memcpy(&info, payload.at, sizeof info);
  for (size_t i = 0; i < VGPU_DEVICE_ATTRIBUTES; ++i) EXPECT_EQ(i == 97 ? 65'536 : 0, info.attribute[i]) << i;
  for (size_t i = 4; i < sizeof info.name; ++i) EXPECT_EQ(0, info.name[i]) << i;
}

TEST(MemoryOps, AnAllocationIsChargedAsTheGpuRoundsIt) {
  Ops rig;
  EXPECT_EQ(kInvalid, rig.Do(VGPU_OP_MEM_ALLOC, {0}));
  const auto free_bytes = [&] { return rig.Done(rig.guest.Submit({VGPU_OP_MEM_INFO})).value[0]; };
  const uint64_t all = free_bytes();
  const uint64_t address = rig.Alloc(513);
  EXPECT_EQ(all - 1'024, free_bytes());
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MEM_FREE, {address}));
  EXPECT_EQ(all, free_bytes());
  EXPECT_EQ(0u, rig.Do(VGPU_OP_MEM_ALLOC, {rig.vf_quota}));
  EXPECT_EQ(0u, free_bytes());
}

}  // namespace
}  // namespace vgpud::exec
