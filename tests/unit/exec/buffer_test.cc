// SPDX-License-Identifier: Apache-2.0
// Pinned buffers: areas from pieces, copies to and from them, and their end while work is queued.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/sanitizer.h"
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kPage = 4096;

struct PieceCase {
  const char* name;
  exec_link::Area area;
  std::vector<exec_link::Piece> pieces;
};

std::ostream& operator<<(std::ostream& os, const PieceCase& c) { return os << c.name; }

exec_link::Area Header(uint64_t bytes, uint32_t total_pieces, uint32_t first, uint32_t count) {
  return {exec_link::Kind::kMapArea, 5, bytes, total_pieces, first, count};
}

// One for all, as in a process.
GuestWindow& Window() {
  static GuestWindow window;
  return window;
}

class BadPieceTest : public testing::TestWithParam<PieceCase> {};

TEST_P(BadPieceTest, IsRefused) {
  const PieceCase& c = GetParam();
  std::vector<ForeignFd> fds;
  fds.emplace_back(*MakeSealedMemfd("buffer", 4 * kPage));
  auto area = GuestArea::Start(Window(), c.area);
  EXPECT_FALSE(area && (*area)->Add(c.area, c.pieces, fds));
}

INSTANTIATE_TEST_SUITE_P(, BadPieceTest,
                         testing::ValuesIn(std::vector<PieceCase>{
                             {"no_bytes", Header(0, 1, 0, 1), {{0, 1, 0, kPage}}},
                             {"odd_total", Header(kPage + 1, 1, 0, 1), {{0, 1, 0, kPage}}},
                             {"huge", Header(uint64_t{1} << 60, 1, 0, 1), {{0, 1, 0, kPage}}},
                             {"no_pieces", Header(kPage, 0, 0, 1), {{0, 1, 0, kPage}}},
                             {"too_many_pieces", Header(kPage, 1, 0, 2), {{0, 1, 0, kPage}, {0, 1, 0, kPage}}},
                             {"wrong_first", Header(kPage, 1, 1, 1), {{0, 1, 0, kPage}}},
                             {"fd_index", Header(kPage, 1, 0, 1), {{1, 1, 0, kPage}}},
                             {"odd_offset", Header(kPage, 1, 0, 1), {{0, 1, 12, kPage}}},
                             {"odd_bytes", Header(kPage, 1, 0, 1), {{0, 1, 0, 100}}},
                             {"beyond_the_area", Header(kPage, 1, 0, 1), {{0, 1, 0, 2 * kPage}}},
                             {"short_of_the_area", Header(2 * kPage, 1, 0, 1), {{0, 1, 0, kPage}}},
                             {"short_file", Header(kPage, 1, 0, 1), {{0, 1, 4 * kPage, kPage}}},
                             {"file_offset_wraps", Header(kPage, 1, 0, 1), {{0, 1, ~uint64_t{0} - kPage + 1, kPage}}},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

struct Buffer {
  explicit Buffer(uint64_t bytes, bool writable = true) {
    fds.emplace_back(*MakeSealedMemfd("buffer", bytes));
    view = *Mapping::Shared(fds[0].get(), 0, bytes);
    const exec_link::Area header = Header(bytes, 2, 0, 2);
    area = *GuestArea::Start(Window(), header);
    // Two pieces in swapped order: the area is not the file.
    const exec_link::Piece pieces[] = {{0, writable, kPage, bytes - kPage}, {0, writable, 0, kPage}};
    CHECK_OK(area->Add(header, pieces, fds));
  }
  static void CHECK_OK(const Result<void>& result) { EXPECT_TRUE(result); }
  std::vector<ForeignFd> fds;
  Mapping view;
  std::unique_ptr<GuestArea> area;
};

TEST(Buffer, CopiesBothWaysThroughPieces) {
  ExecRig rig;
  Buffer buffer(64 * kPage);
  rig.exec->engine()->buffers().Add(5, buffer.area.get());
  const uint64_t address = rig.Alloc(64 * kPage);
  std::memset(buffer.view.data(), 1, 64 * kPage);
  buffer.view.data()[kPage] = std::byte{42};  // first byte of the area
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_BUF_IN, {address, 5, 0, 64 * kPage}})));
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_BUF_OUT, {address, 5, 64 * kPage - 8, 8}})));
  EXPECT_EQ(std::byte{42}, buffer.view.data()[kPage - 8]);
}

// A process may have so many mappings and no more.
TEST(Buffer, OneThatThereIsNoMemoryToMapIsOutOfMemory) {
  if (kSanitizerBuild) GTEST_SKIP() << "a sanitizer needs mappings, too";
  constexpr size_t kMostPages = 600'000;
  ExecRig rig;
  const uint64_t address = rig.Alloc(4096);
  std::vector<ForeignFd> fds;
  fds.emplace_back(*MakeSealedMemfd("buffer", 8 * kPage));
  const exec_link::Area header = Header(4 * kPage, 4, 0, 4);
  const exec_link::Piece pieces[] = {
      {0, 1, 6 * kPage, kPage}, {0, 1, 4 * kPage, kPage}, {0, 1, 2 * kPage, kPage}, {0, 1, 0, kPage}};
  auto area = *GuestArea::Start(Window(), header);
  {
    const Mapping filler = *Mapping::Reserve(kMostPages * kPage);
    size_t page = 0;
    while (page < kMostPages && ::mprotect(filler.data() + page * kPage, kPage, PROT_READ) == 0) page += 2;
    if (page >= kMostPages) GTEST_SKIP() << "this host has no such limit";
    EXPECT_TRUE(area->Add(header, pieces, fds));
  }
  EXPECT_TRUE(area->failed());
  EXPECT_FALSE(area->complete());
  rig.exec->engine()->buffers().Add(5, area.get());
  EXPECT_EQ(static_cast<uint32_t>(CuStatus::kOutOfMemory),
            rig.Status(rig.guest.Submit({VGPU_OP_BUF_IN, {address, 5, 0, 16}})));
  EXPECT_EQ(0u, rig.guest.sticky());
}

TEST(Buffer, RangesAndIdsAreChecked) {
  ExecRig rig;
  Buffer buffer(2 * kPage);
  Buffer read_only(2 * kPage, false);
  rig.exec->engine()->buffers().Add(5, buffer.area.get());
  rig.exec->engine()->buffers().Add(6, read_only.area.get());
  const uint64_t address = rig.Alloc(2 * kPage);
  rig.Grant();
  const auto status = [&](uint32_t op, uint64_t id, uint64_t offset, uint64_t bytes) {
    return rig.Status(rig.guest.Submit({op, {address, id, offset, bytes}}));
  };
  EXPECT_EQ(1u, status(VGPU_OP_BUF_IN, 5, 1, 2 * kPage));
  EXPECT_EQ(1u, status(VGPU_OP_BUF_IN, 5, ~uint64_t{0}, 2));
  EXPECT_EQ(1u, status(VGPU_OP_BUF_IN, 7, 0, 1));
  EXPECT_EQ(1u, status(VGPU_OP_BUF_IN, (uint64_t{1} << 32) + 5, 0, 1));
  EXPECT_EQ(1u, status(VGPU_OP_BUF_OUT, 6, 0, 1));
  EXPECT_EQ(0u, status(VGPU_OP_BUF_IN, 6, 0, 1));
  EXPECT_EQ(0u, rig.guest.sticky());
}

struct AddressCase {
  const char* name;
  uint64_t id;
  bool read_only;
  bool shares;
  uint32_t status;
};
TEST(Buffer, ItsAddressIsToldWhereItCanBeReached) {
  const AddressCase cases[] = {{"one", 5, false, true, 0},
                               {"none", 6, false, true, 1},
                               {"more_than_32_bits", (uint64_t{1} << 32) + 5, false, true, 1},
                               {"read_only", 5, true, true, 801},
                               {"a_gpu_that_shares_nothing", 5, false, false, 801}};
  for (const AddressCase& c : cases) {
    ExecRig rig;
    rig.script->shares = c.shares;
    Buffer buffer(2 * kPage, !c.read_only);
    rig.exec->engine()->buffers().Add(5, buffer.area.get());
    const vgpu_cqe done = rig.Done(rig.guest.Submit({VGPU_OP_BUF_ADDRESS, {c.id}}));
    EXPECT_EQ(c.status, done.status) << c.name;
    if (c.status != 0) continue;
    EXPECT_EQ(reinterpret_cast<uint64_t>(buffer.area->bytes().data()), done.value[0]);
    EXPECT_EQ(2 * kPage, done.value[1]);
  }
}

TEST(Buffer, WhatIsSharedStaysSoAcrossAResetAndNotLonger) {
  ExecRig rig;
  rig.Grant();
  Buffer buffer(2 * kPage), other(2 * kPage);
  rig.exec->engine()->buffers().Add(5, buffer.area.get());
  rig.exec->engine()->buffers().Add(6, other.area.get());
  const uint64_t address = rig.Done(rig.guest.Submit({VGPU_OP_BUF_ADDRESS, {5}})).value[0];
  const auto fill = [&](uint64_t at) { return rig.Status(rig.guest.Submit({VGPU_OP_FILL, {at, 7, 1, 16}})); };
  EXPECT_EQ(0u, fill(address));
  EXPECT_EQ(1u, fill(reinterpret_cast<uint64_t>(other.area->bytes().data()))) << "nobody asked";
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_CONTEXT_RESET})));
  EXPECT_EQ(0u, fill(address));
  EXPECT_EQ(1u, fill(reinterpret_cast<uint64_t>(other.area->bytes().data())));
  EXPECT_EQ(std::byte{7}, buffer.view.data()[kPage]) << "the first byte of the area";
  rig.exec->DropBuffer(5);
  EXPECT_EQ(1u, fill(address));
}

TEST(Buffer, PartsOfTheAddressesAreNumbered) {
  ExecRig rig;
  const auto set = [&](uint64_t part) {
    return rig.Status(rig.guest.Submit({VGPU_OP_LIMIT_SET, {VGPU_LIMIT_BUFFER_PART, part}}));
  };
  EXPECT_EQ(0u, rig.exec->engine()->buffers().part());
  EXPECT_EQ(0u, set(15));
  EXPECT_EQ(15u, rig.exec->engine()->buffers().part());
  EXPECT_EQ(1u, set(16));
  EXPECT_EQ(1u, set(uint64_t{1} << 32));
  EXPECT_EQ(15u, rig.exec->engine()->buffers().part());
}

TEST(Buffer, ManagedVariablesGoOnlyWhereMemoryIsShared) {
  ExecRig rig;
  rig.Grant();
  Buffer buffer(2 * kPage);
  rig.exec->engine()->buffers().Add(5, buffer.area.get());
  const uint64_t address = rig.Done(rig.guest.Submit({VGPU_OP_BUF_ADDRESS, {5}})).value[0];
  const std::string image = "kernel one 1\n";
  uint64_t module = 0;
  const auto load = [&](uint64_t at, uint64_t bytes) {
    ++module;
    rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {module, image.size()}});
    rig.guest.Submit({VGPU_OP_MODULE_DATA, {module, 0}, 0, rig.guest.Take(image)});
    return rig.Status(rig.guest.Submit({VGPU_OP_MODULE_LOAD, {module, at, bytes}}));
  };
  EXPECT_EQ(0u, load(0, 0));
  EXPECT_EQ(0u, load(address, 2 * kPage));
  EXPECT_EQ(1u, load(address, 2 * kPage + 1));
  EXPECT_EQ(1u, load(address + 256, 512)) << "not aligned";
  EXPECT_EQ(1u, load(address + 512, ~uint64_t{0}));
  EXPECT_EQ(1u, load(0x1000, 512));
  EXPECT_EQ(0u, rig.guest.sticky());
}

// The loader is held in the middle of writing managed variables: the buffer stays until it has left.
TEST(Buffer, RemovalWaitsForTheLoaderToLeaveIt) {
  ExecRig rig;
  Buffer buffer(2 * kPage);
  rig.exec->engine()->buffers().Add(5, buffer.area.get());
  const uint64_t address = rig.Done(rig.guest.Submit({VGPU_OP_BUF_ADDRESS, {5}})).value[0];
  const std::string image = "kernel one 1\n";
  const auto load = [&](uint64_t module) {
    rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {module, image.size()}});
    rig.guest.Submit({VGPU_OP_MODULE_DATA, {module, 0}, 0, rig.guest.Take(image)});
    return rig.Status(rig.guest.Submit({VGPU_OP_MODULE_LOAD, {module, address, 2 * kPage}}));
  };
  std::atomic<bool> removed{false};
  std::thread remover;
  rig.script->on_managed = [&] {
    remover = std::thread([&] {
      rig.exec->DropBuffer(5);
      removed = true;
    });
    while (!buffer.area->users()->gone()) std::this_thread::yield();
    for (int n = 0; n < 1000; ++n) std::this_thread::yield();
    EXPECT_FALSE(removed) << "the loader is inside";
  };
  EXPECT_EQ(0u, load(1)) << "what it has begun it ends";
  remover.join();
  EXPECT_TRUE(removed);
  EXPECT_EQ(std::byte{7}, buffer.view.data()[0]);
}

TEST(Buffer, AModuleWhoseBufferHasGoneIsNotLoaded) {
  ExecRig rig;
  auto buffer = std::make_unique<Buffer>(2 * kPage);
  rig.exec->engine()->buffers().Add(5, buffer->area.get());
  const uint64_t address = rig.Done(rig.guest.Submit({VGPU_OP_BUF_ADDRESS, {5}})).value[0];
  const std::string image = "kernel one 1\n";
  rig.script->on_load = [&] {
    rig.exec->DropBuffer(5);
    buffer->area->Drop();
    buffer.reset();
  };
  rig.script->on_managed = [] { ADD_FAILURE() << "nothing is there to be written"; };
  rig.guest.Submit({VGPU_OP_MODULE_BEGIN, {1, image.size()}});
  rig.guest.Submit({VGPU_OP_MODULE_DATA, {1, 0}, 0, rig.guest.Take(image)});
  EXPECT_EQ(1u, rig.Status(rig.guest.Submit({VGPU_OP_MODULE_LOAD, {1, address, 2 * kPage}})));
  EXPECT_EQ("the memory for managed variables has gone", rig.error_text());
  rig.script->on_load = nullptr;
  EXPECT_EQ(0u, rig.Load(2, image).status) << "the context lives on";
}

TEST(Buffer, RemovalFailsQueuedCopiesOnly) {
  ExecRig rig;
  auto buffer = std::make_unique<Buffer>(64 * kPage);
  rig.exec->engine()->buffers().Add(5, buffer->area.get());
  const uint64_t address = rig.Alloc(64 * kPage);
  const uint64_t copy = rig.guest.Submit({VGPU_OP_BUF_IN, {address, 5, 0, 64 * kPage}});
  const uint64_t fill = rig.guest.Submit({VGPU_OP_FILL, {address, 0, 1, 8}});
  rig.Settle();
  rig.exec->DropBuffer(5);
  buffer->area->Drop();
  buffer.reset();
  rig.Grant();
  EXPECT_EQ(1u, rig.Status(copy));
  EXPECT_EQ(0u, rig.Status(fill));
}

TEST(Buffer, CloseForgetsTheChannel) {
  ExecRig rig;
  const uint64_t endless = rig.Kernel("endless");
  rig.guest.Launch(endless, 0);
  rig.Settle();
  rig.exec->Close();
  ::mprotect(rig.guest.area().data(), rig.guest.area().size(), PROT_NONE);
  rig.Grant();
  rig.Settle();
  EXPECT_FALSE(rig.exec->engine()->HasWork());
  EXPECT_FALSE(rig.exec->engine()->FlushCompletions());
  EXPECT_TRUE(rig.exec->PrepareSleep());
  EXPECT_EQ(0, rig.script->live_grids);
}

}  // namespace
}  // namespace vgpud::exec
