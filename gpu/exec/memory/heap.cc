// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory/heap.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace vgpud::exec::heap {
namespace {

// What a thread has allocated and freed since it settled.
constexpr int64_t kSettleAt = 32 << 10;
constexpr size_t kPerBlock = 16;  // that malloc keeps beside a block
constexpr size_t kUsualAlignment = alignof(std::max_align_t);

enum class Mode : uint8_t { kCount, kLimit, kLimitAndWait };

// For what must not fail, in all; smaller than what malloc maps on its own, so that it is the heap's when freed.
constexpr size_t kReserveBytes = 192 << 10;
constexpr size_t kSmall = 64 << 10;

std::atomic<HostMemory*> g_memory{nullptr};
std::atomic<void*> g_reserve{nullptr};
thread_local int64_t t_open = 0;
thread_local Mode t_mode = Mode::kCount;
thread_local size_t t_missing = 0;

void Settle(HostMemory& memory) {
  const int64_t open = std::exchange(t_open, 0);
  if (open >= 0) {
    memory.Add(static_cast<uint64_t>(open));
  } else {
    memory.Give(static_cast<uint64_t>(-open));
  }
}

// False: `bytes` more, and what is open, are not granted.
bool MayHave(HostMemory& memory, size_t bytes) {
  if (t_open + static_cast<int64_t>(bytes) < kSettleAt) return true;
  Settle(memory);
  // Asking the ledger allocates nothing that could end here again.
  const Mode mode = std::exchange(t_mode, Mode::kCount);
  const bool ok = mode == Mode::kLimit ? memory.Take(bytes) : memory.TakeOrWait(bytes);
  t_mode = mode;
  if (ok) memory.Give(bytes);  // counted like any other below
  t_missing = bytes;
  return ok;
}

void* FromHost(size_t bytes, size_t alignment) {
  if (alignment <= kUsualAlignment) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

}  // namespace

bool KeepReserve() {
  if (g_memory.load(std::memory_order_relaxed) == nullptr || g_reserve.load(std::memory_order_relaxed) != nullptr)
    return true;
  void* const fresh = std::malloc(kReserveBytes);
  void* none = nullptr;
  if (fresh != nullptr && !g_reserve.compare_exchange_strong(none, fresh)) std::free(fresh);
  return fresh != nullptr;
}

void CountIn(HostMemory* memory) {
  // Large blocks go back to the host when they are freed, whatever was freed before.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  g_memory.store(memory);
  KeepReserve();
}

Limit::Limit(bool wait)
    : around_(static_cast<uint8_t>(std::exchange(t_mode, wait ? Mode::kLimitAndWait : Mode::kLimit))) {}
Limit::~Limit() { t_mode = static_cast<Mode>(around_); }
size_t Limit::missing() { return t_missing; }

void* Allocate(size_t bytes, size_t alignment) {
  HostMemory* const memory = g_memory.load(std::memory_order_relaxed);
  bytes = std::max<size_t>(bytes, 1);
  if (memory != nullptr && t_mode != Mode::kCount && !MayHave(*memory, bytes)) throw std::bad_alloc();
  void* block = FromHost(bytes, alignment);
  if (block == nullptr && t_mode == Mode::kCount && bytes <= kSmall) {
    std::free(g_reserve.exchange(nullptr));
    block = FromHost(bytes, alignment);
  }
  if (block == nullptr) throw std::bad_alloc();
  t_open += static_cast<int64_t>(::malloc_usable_size(block) + kPerBlock);
  if (memory != nullptr && t_open >= kSettleAt) Settle(*memory);
  return block;
}

void Free(void* block) noexcept {
  if (block == nullptr) return;
  t_open -= static_cast<int64_t>(::malloc_usable_size(block) + kPerBlock);
  std::free(block);
  HostMemory* const memory = g_memory.load(std::memory_order_relaxed);
  if (memory != nullptr && t_open <= -kSettleAt) Settle(*memory);
}

}  // namespace vgpud::exec::heap
