// SPDX-License-Identifier: Apache-2.0
// Where things are: payload spans, the channel's header and rings, addresses of guest memory.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/sanitizer.h"
#include "gpu/exec/channel/completions.h"
#include "gpu/exec/memory/area.h"
#include "gpu/exec/memory/guest_window.h"
#include "gpu/exec/memory/payload_window.h"
#include "tests/unit/exec/fakes/test_guest.h"

namespace vgpud::exec {
namespace {

TEST(PayloadSpans, AreInsideOfWhatIsFreeAndDoNotWrap) {
  PayloadWindow window(1000);
  const struct {
    uint64_t position;
    uint32_t length;
    bool good;
  } kFirst[] = {{0, 0, false},     {0, 1, true},   {0, 500, true},  {0, 501, false},  {500, 500, true},
                {501, 500, false}, {999, 1, true}, {999, 2, false}, {1000, 1, false}, {~uint64_t{0}, 1, false}};
  for (const auto& span : kFirst) EXPECT_EQ(span.good, window.Accepts(span.position, span.length)) << span.position;
  const uint64_t first = window.Take(100, 300);
  EXPECT_FALSE(window.Accepts(399, 1)) << "it goes back";
  EXPECT_TRUE(window.Accepts(400, 500));
  const uint64_t second = window.Take(400, 500);
  EXPECT_FALSE(window.Accepts(1000, 100)) << "the first is still there";
  window.Free(second);
  EXPECT_EQ(0u, window.released()) << "in the order of the ring";
  window.Free(first);
  EXPECT_EQ(900u, window.released());
  EXPECT_TRUE(window.Accepts(1000, 500));
  EXPECT_TRUE(window.Accepts(1899, 1));
  EXPECT_FALSE(window.Accepts(1900, 1));
  const uint64_t third = window.Take(1000, 500), fourth = window.Take(1500, 100);
  EXPECT_NE(third, fourth);
  window.Free(third);
  EXPECT_EQ(1500u, window.released());
  window.Free(fourth);
  EXPECT_EQ(1600u, window.released());
  EXPECT_TRUE(window.Accepts(1950, 50));
  EXPECT_FALSE(window.Accepts(1950, 51)) << "it wraps, in a later round, too";
  EXPECT_TRUE(window.Accepts(2000, 51));
}

TEST(ChannelHeader, IsCheckedBeforeItIsUsed) {
  TestGuest guest(0x10000);
  EXPECT_TRUE(ChannelMemory::Open(guest.area()));
  EXPECT_EQ(0x10000u, ChannelMemory::Open(guest.area())->payload_bytes());
  EXPECT_FALSE(ChannelMemory::Open(guest.area().first(VGPU_CHANNEL_MIN_BYTES - 1)));
  const auto refused = [&](auto& field, auto value) {
    const auto before = std::exchange(field, value);
    const auto opened = ChannelMemory::Open(guest.area());
    field = before;
    return opened ? std::errc{} : opened.error().code;
  };
  EXPECT_EQ(std::errc::invalid_argument, refused(guest.header().magic, VGPU_MAGIC + 1));
  EXPECT_EQ(std::errc::protocol_not_supported, refused(guest.header().abi_version, VGPU_ABI_OLDEST - 1));
  EXPECT_EQ(std::errc::protocol_not_supported, refused(guest.header().abi_version, VGPU_ABI_VERSION + 1));
  EXPECT_EQ(std::errc::invalid_argument, refused(guest.header().payload_bytes, uint64_t{4'095}));
  const std::pair<uint64_t, uint64_t> kSizes[] = {
      {4'096, 4'096}, {8'191, 4'096}, {8'192, 8'192}, {0x10001, 0x10000}, {~uint64_t{0}, 0x10000}};
  for (const auto& [wanted, is] : kSizes) {
    guest.header().payload_bytes = wanted;
    EXPECT_EQ(is, ChannelMemory::Open(guest.area())->payload_bytes()) << wanted;
  }
}

TEST(ChannelHeader, WhatTheHostSaysIsWhereTheAbiHasIt) {
  TestGuest guest(0x10000);
  ChannelMemory memory = *ChannelMemory::Open(guest.area());
  const auto word = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, guest.area().data() + at, 8);
    return value;
  };
  memory.SetSqHead(1);
  memory.SetCqTail(2);
  memory.SetSqNeedWakeup(3);
  memory.SetState(4);
  memory.SetPayloadReleased(5);
  memory.SetStickyError(6);
  memory.SetPrinted(7);
  EXPECT_EQ(1u | uint64_t{2} << 32, word(0x80));
  EXPECT_EQ(3u | uint64_t{4} << 32, word(0x88));
  EXPECT_EQ(5u, word(0x90));
  EXPECT_EQ(6u | uint64_t{7} << 32, word(0x98));
  memory.SetEvent(3, 8, 9);
  EXPECT_EQ(8u, word(0x21000 + 48));
  EXPECT_EQ(9u, word(0x21000 + 56));
  memory.SetErrorText(std::string(600, 'x'));
  EXPECT_EQ(std::string(511, 'x'), guest.header().error_text);
  memory.SetErrorText("short");
  for (size_t i = 5; i < 512; ++i) EXPECT_EQ(0, guest.header().error_text[i]) << i;
  guest.header().gate[255] = 77;
  EXPECT_EQ(77u, memory.Gate(255));
  guest.header().cq_need_wakeup = 1;
  EXPECT_TRUE(memory.TakeCqWakeup());
  EXPECT_FALSE(memory.TakeCqWakeup());
  EXPECT_EQ(guest.area().data() + VGPU_CHANNEL_PAYLOAD_OFFSET + 5, memory.Payload(0x10005, 1).data());
}

TEST(ChannelRings, GoRoundAfter1024Entries) {
  TestGuest guest(0x10000);
  ChannelMemory memory = *ChannelMemory::Open(guest.area());
  vgpu_sqe entry{};
  for (uint64_t i = 0; i < 1025; ++i) {
    entry.seqno = 100 + i;
    entry.args[3] = i;
    guest.Put(entry);
  }
  EXPECT_EQ(1125u - 1, memory.ReadSqe(1024).seqno);
  EXPECT_EQ(1024u, memory.ReadSqe(0).args[3]) << "over the first";
  EXPECT_EQ(101u, memory.ReadSqe(1).seqno);
  EXPECT_EQ(1123u, memory.ReadSqe(1023).seqno);
  int interrupts = 0;
  Completions completions(memory, [&] { ++interrupts; });
  for (uint64_t i = 0; i < 1030; ++i)
    completions.Push(i, static_cast<uint32_t>(i + 1), {i, i + 1, i + 2, i + 3, i + 4, i + 5});
  EXPECT_EQ(6u, completions.waiting());
  EXPECT_EQ(0, interrupts);
  guest.Read();
  EXPECT_EQ(1024u, guest.order().size());
  guest.header().cq_need_wakeup = 1;
  completions.Flush();
  EXPECT_EQ(0u, completions.waiting());
  EXPECT_EQ(1, interrupts);
  const vgpu_cqe* last = guest.Completion(1029);
  ASSERT_NE(nullptr, last);
  EXPECT_EQ(1030u, last->status);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(1029 + i, last->value[i]);
  guest.header().cq_need_wakeup = 1;
  completions.Flush();
  EXPECT_EQ(1, interrupts) << "nothing has moved";
}

TEST(GuestAddresses, LieInTheWindowWithGapsAndAreUsedAgain) {
  if (!kFixedAddresses) GTEST_SKIP() << "a sanitizer's own memory may be there";
  constexpr uint64_t kGap = 64 * 1024, kBytes = 4'096;
  constexpr uint64_t kWindowBegin = uint64_t{0x2000} << 32, kWindowEnd = uint64_t{0x3000} << 32;
  GuestWindow window;
  const auto at = [](const Mapping& mapping) { return reinterpret_cast<uint64_t>(mapping.data()); };
  Mapping first = *window.Reserve(kBytes), second = *window.Reserve(2 * kBytes), third = *window.Reserve(kBytes);
  EXPECT_EQ(kWindowBegin + kGap, at(first));
  EXPECT_EQ(at(first) + kBytes + kGap, at(second));
  EXPECT_EQ(at(second) + 2 * kBytes + kGap, at(third));
  const uint64_t place = at(second);
  window.Release(second);
  second = Mapping{};
  const Mapping larger = *window.Reserve(3 * kBytes);
  EXPECT_EQ(at(third) + kBytes + kGap, at(larger)) << "it does not fit between the two";
  const Mapping same = *window.Reserve(2 * kBytes);
  EXPECT_EQ(place, at(same));
  const auto too_large = window.Reserve(kWindowEnd - kWindowBegin);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(std::errc::not_enough_memory, too_large.error().code);
}

TEST(GuestAddresses, OfBuffersLieWhereKernelsReachThemInTheirPart) {
  if (!kFixedAddresses) GTEST_SKIP() << "a sanitizer's own memory may be there";
  constexpr uint64_t kAlignment = 2 << 20, kBytes = 4'096;
  constexpr uint64_t kDevice = (uint64_t{0x3000} << 32) + (uint64_t{4} << 30);
  constexpr uint64_t kBegin = kDevice - (uint64_t{1} << 40) + (uint64_t{8} << 30), kEnd = kDevice - (uint64_t{8} << 30);
  const ReachSpace reach = KernelReach();
  EXPECT_EQ(kDevice, reinterpret_cast<uint64_t>(reach.device_memory));
  EXPECT_EQ(kBegin, reinterpret_cast<uint64_t>(reach.shared().data()));
  EXPECT_EQ(kEnd - kBegin, reach.shared().size());
  GuestWindow window(reach.shared(), kAlignment);
  const auto at = [](const Mapping& mapping) { return reinterpret_cast<uint64_t>(mapping.data()); };
  Mapping first = *window.Reserve(kBytes), second = *window.Reserve(kAlignment), third = *window.Reserve(kBytes);
  EXPECT_EQ(kBegin + kAlignment, at(first));
  EXPECT_EQ(kBegin + 2 * kAlignment, at(second));
  EXPECT_EQ(kBegin + 4 * kAlignment, at(third)) << "a gap behind each";
  window.BeginAt(15, 16);
  const Mapping last = *window.Reserve(kBytes);
  EXPECT_EQ(kBegin + (kEnd - kBegin) / 16 / kAlignment * 15 * kAlignment + kAlignment, at(last));
  EXPECT_FALSE(window.Reserve((kEnd - kBegin) / 16)) << "larger than the last part";
  window.BeginAt(16, 16);
  EXPECT_LT(at(last), at(*window.Reserve(kBytes))) << "there is no such part";
  window.BeginAt(0, 16);
  window.Release(second);
  second = Mapping{};
  EXPECT_EQ(kBegin + 2 * kAlignment, at(*window.Reserve(kAlignment)));
  // All else is in front of that.
  GuestWindow plain;
  EXPECT_FALSE(plain.Reserve(kDevice - (uint64_t{0x2000} << 32) - (uint64_t{1} << 40)));
}

exec_link::Area Header(uint64_t bytes, uint32_t total, uint32_t first = 0, uint32_t count = 1) {
  return {exec_link::Kind::kMapArea, 5, bytes, total, first, count};
}

TEST(GuestAreas, HaveAMostOfBytesAndOfPieces) {
  static GuestWindow window;
  constexpr uint64_t kMost = uint64_t{64} << 30;
  EXPECT_TRUE(GuestArea::Start(window, Header(kMost, 1)));
  EXPECT_FALSE(GuestArea::Start(window, Header(kMost + 4'096, 1)));
  EXPECT_TRUE(GuestArea::Start(window, Header(4'096, VGPU_MAX_SEGMENTS)));
  EXPECT_FALSE(GuestArea::Start(window, Header(4'096, VGPU_MAX_SEGMENTS + 1)));
  for (const uint64_t odd : {uint64_t{1}, uint64_t{4'095}, uint64_t{4'097}, uint64_t{6'144}})
    EXPECT_FALSE(GuestArea::Start(window, Header(odd, 1))) << odd;
}

TEST(GuestAreas, AreCompleteWithTheirLastPieceAndWritableIfAllAre) {
  static GuestWindow window;
  std::vector<ForeignFd> fds;
  fds.emplace_back(*MakeSealedMemfd("buffer", 8 * 4'096));
  for (const uint32_t writable : {0u, 1u}) {
    auto area = *GuestArea::Start(window, Header(3 * 4'096, 3));
    EXPECT_FALSE(area->complete());
    const exec_link::Piece first[] = {{0, 1, 0, 4'096}};
    ASSERT_TRUE(area->Add(Header(3 * 4'096, 3, 0, 1), first, fds));
    EXPECT_FALSE(area->complete());
    EXPECT_FALSE(area->Add(Header(3 * 4'096, 3, 0, 1), first, fds)) << "the same again";
    EXPECT_FALSE(area->Add(Header(3 * 4'096, 3, 2, 1), first, fds)) << "one is missing";
    EXPECT_FALSE(area->Add(Header(3 * 4'096, 4, 1, 1), first, fds)) << "another number of pieces";
    EXPECT_FALSE(area->Add(Header(4 * 4'096, 3, 1, 1), first, fds)) << "another size";
    EXPECT_FALSE(area->Add(Header(3 * 4'096, 3, 1, 0), {}, fds)) << "no pieces";
    const exec_link::Piece rest[] = {{0, writable, 7 * 4'096, 4'096}, {0, 1, 4'096, 4'096}};
    ASSERT_TRUE(area->Add(Header(3 * 4'096, 3, 1, 2), rest, fds));
    EXPECT_TRUE(area->complete());
    EXPECT_FALSE(area->failed());
    EXPECT_EQ(writable != 0, area->writable());
    EXPECT_EQ(3u * 4'096, area->bytes().size());
    area->Drop();
    EXPECT_FALSE(area->complete());
    EXPECT_TRUE(area->Add(Header(3 * 4'096, 3, 0, 1), first, fds)) << "what comes late is ignored";
  }
}

}  // namespace
}  // namespace vgpud::exec
