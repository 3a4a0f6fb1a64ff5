#include "vfio/executor_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <vector>

#include "base/jail_rules.h"

namespace vgpud {
namespace {

using Verdict = SyscallWatch::Verdict;

constexpr uint64_t kPage = 4096;

bool InWindow(uint64_t begin, uint64_t bytes) {
  return begin % kPage == 0 && bytes % kPage == 0 && bytes != 0 && begin >= kGuestWindowBegin &&
         begin < kGuestWindowEnd && bytes <= kGuestWindowEnd - begin;
}

}  // namespace

void ExecutorMemory::Expect(uint32_t area, const FilePiece& piece) { expected_.push_back({area, piece}); }

void ExecutorMemory::Revoke(uint32_t area) {
  for (Expected& expected : expected_) expected.revoked |= expected.area == area;
}

bool ExecutorMemory::Holds(uint32_t area) const {
  return std::any_of(mapped_.begin(), mapped_.end(), [&](const auto& m) { return m.second.area == area; });
}

Verdict ExecutorMemory::Judge(const SyscallWatch::Call& call) {
  answered_ = nullptr;
  undo_ = nullptr;
  if (call.number == SYS_mmap) return JudgeMap(call.arguments);
  if (call.number == SYS_munmap) return JudgeUnmap(call.arguments[0], call.arguments[1]);
  return {};
}

void ExecutorMemory::Undo() {
  if (undo_) undo_();
  undo_ = nullptr;
}

// mmap(addr, length, prot, flags, fd, offset)
Verdict ExecutorMemory::JudgeMap(const uint64_t (&arguments)[6]) {
  const uint64_t begin = arguments[0], bytes = arguments[1];
  if (expected_.empty() || !InWindow(begin, bytes)) return {};
  const Expected next = expected_.front();
  const uint64_t protection = PROT_READ | (next.piece.writable ? PROT_WRITE : 0);
  if (bytes != next.piece.bytes || arguments[2] != protection || arguments[3] != (MAP_SHARED | MAP_FIXED) ||
      static_cast<uint32_t>(arguments[4]) != kGuestFileNumber || arguments[5] != next.piece.offset)
    return {};
  const auto behind = mapped_.lower_bound(begin + bytes);
  if (behind != mapped_.begin() && std::prev(behind)->second.end > begin) return {};  // over another one
  Verdict verdict{Verdict::Kind::kRefuse, ENXIO};
  if (!next.revoked) {
    answered_ = next.piece.file;
    verdict = {Verdict::Kind::kGo, 0, next.piece.file->get(), kGuestFileNumber};
    mapped_.emplace(begin, Mapped{begin + bytes, next.area});
  }
  // An executor that is refused one piece of an area does not ask for the others.
  const auto last = std::find_if(expected_.begin() + 1, expected_.end(), [&](const Expected& other) {
    return !next.revoked || !other.revoked || other.area != next.area;
  });
  undo_ = [this, begin, asked = std::vector(expected_.begin(), last)] {
    mapped_.erase(begin);
    expected_.insert(expected_.begin(), asked.begin(), asked.end());
  };
  expected_.erase(expected_.begin(), last);
  return verdict;
}

Verdict ExecutorMemory::JudgeUnmap(uint64_t begin, uint64_t bytes) {
  if (!InWindow(begin, bytes)) return {};
  const auto first = mapped_.lower_bound(begin), last = mapped_.lower_bound(begin + bytes);
  if (first != mapped_.begin() && std::prev(first)->second.end > begin) return {};
  if (first != last && std::prev(last)->second.end > begin + bytes) return {};
  // The kernel may have made one mapping of neighbours, and to cut one can fail; whole ones always go.
  if (first != mapped_.begin() && std::prev(first)->second.end == begin) return {};
  if (last != mapped_.end() && last->first == begin + bytes) return {};
  undo_ = [this, gone = std::vector(first, last)] { mapped_.insert(gone.begin(), gone.end()); };
  mapped_.erase(first, last);
  return {Verdict::Kind::kGo};
}

}  // namespace vgpud
