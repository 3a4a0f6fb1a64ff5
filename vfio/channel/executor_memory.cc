// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/executor_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/jail/rules.h"

namespace vgpud::vfio {
namespace {

using Verdict = SyscallWatch::Verdict;

constexpr uint64_t kPage = 4096;

bool InWindow(uint64_t begin, uint64_t bytes) {
  return begin % kPage == 0 && bytes % kPage == 0 && bytes != 0 && begin >= kGuestWindowBegin && begin < kGuestFence &&
         bytes <= kGuestFence - begin;
}

// mmap(addr, length, prot, flags, fd, offset)
bool Matches(const FilePiece& piece, const uint64_t (&arguments)[6]) {
  const uint64_t protection = PROT_READ | (piece.writable ? PROT_WRITE : 0);
  return arguments[1] == piece.bytes && arguments[2] == protection && arguments[3] == (MAP_SHARED | MAP_FIXED) &&
         static_cast<uint32_t>(arguments[4]) == kGuestFileNumber && arguments[5] == piece.offset;
}

Verdict Go(const FilePiece& piece) { return {Verdict::Kind::kGo, 0, piece.file->get(), kGuestFileNumber}; }

}  // namespace

void ExecutorMemory::Expect(uint32_t area, const FilePiece& piece) { expected_.push_back({area, piece}); }

void ExecutorMemory::Revoke(uint32_t area) {
  for (Expected& expected : expected_) expected.revoked |= expected.area == area;
}

bool ExecutorMemory::Holds(uint32_t area) const {
  const bool may = in_flight_ && in_flight_->maps && expected_.front().area == area;
  return may || std::any_of(mapped_.begin(), mapped_.end(), [&](const auto& m) { return m.second.area == area; });
}

bool ExecutorMemory::Forget(uint32_t area) {
  if (Holds(area)) return false;
  EraseExpected(area);
  return true;
}

void ExecutorMemory::EraseExpected(uint32_t area) {
  std::erase_if(expected_, [area](const Expected& expected) { return expected.area == area; });
}

void ExecutorMemory::Undelivered() {
  // The first of two equal ones may have mapped it.
  if (in_flight_ && !(in_flight_->maps && in_flight_->again)) in_flight_.reset();
  if (refused_) expected_.push_front(*std::exchange(refused_, std::nullopt));
}

void ExecutorMemory::Settle() {
  const auto done = std::exchange(in_flight_, std::nullopt);
  if (!done) return;
  if (!done->maps) {
    mapped_.erase(mapped_.lower_bound(done->begin), mapped_.lower_bound(done->end));
    return;
  }
  mapped_.emplace(done->begin, Mapped{done->end, expected_.front().area});
  expected_.pop_front();
}

Verdict ExecutorMemory::Judge(const SyscallWatch::Call& call) {
  const uint64_t begin = call.arguments[0], end = begin + call.arguments[1];
  // Once more the same: a signal has interrupted it after the answer (before Linux 5.19). Doing it twice does no harm.
  if (in_flight_ && in_flight_->maps == (call.number == SYS_mmap) && in_flight_->begin == begin &&
      in_flight_->end == end) {
    in_flight_->again = true;
    if (in_flight_->maps)
      return Matches(expected_.front().piece, call.arguments) ? Go(expected_.front().piece) : Verdict{};
    if (call.number == SYS_munmap) return {Verdict::Kind::kGo};
  }
  Settle();
  refused_.reset();
  if (call.number == SYS_mmap) return JudgeMap(call.arguments);
  if (call.number == SYS_munmap) return JudgeUnmap(call.arguments[0], call.arguments[1]);
  return {};
}

Verdict ExecutorMemory::JudgeMap(const uint64_t (&arguments)[6]) {
  const uint64_t begin = arguments[0], bytes = arguments[1];
  if (expected_.empty() || !InWindow(begin, bytes)) return {};
  const Expected& next = expected_.front();
  if (!Matches(next.piece, arguments)) return {};
  const auto behind = mapped_.lower_bound(begin + bytes);
  if (behind != mapped_.begin() && std::prev(behind)->second.end > begin) return {};  // over another one
  if (next.revoked) {
    // With the first of them it gives up the area: it does not ask for the others.
    refused_ = next;
    EraseExpected(next.area);
    return {Verdict::Kind::kRefuse, ENXIO};
  }
  in_flight_ = {true, begin, begin + bytes};
  return Go(next.piece);
}

Verdict ExecutorMemory::JudgeUnmap(uint64_t begin, uint64_t bytes) {
  if (begin == kGuestFence && bytes == kPage) return {Verdict::Kind::kRefuse, 0};
  if (!InWindow(begin, bytes)) return {};
  const uint64_t end = begin + bytes;
  const auto first = mapped_.lower_bound(begin), last = mapped_.lower_bound(end);
  if (first != mapped_.begin() && std::prev(first)->second.end > begin) return {};
  if (first != last) {
    // Exactly pieces: the kernel refuses to cut some other kinds of mapping, and would keep these as well.
    if (first->first != begin || std::prev(last)->second.end != end) return {};
    // It may have made one mapping of neighbours, and to cut one can fail; whole ones always go.
    if (first != mapped_.begin() && std::prev(first)->second.end == begin) return {};
    if (last != mapped_.end() && last->first == end) return {};
  }
  in_flight_ = {false, begin, end};
  return {Verdict::Kind::kGo};
}

}  // namespace vgpud::vfio
