// SPDX-License-Identifier: Apache-2.0
// ld and st that other threads may look at the same time: .volatile, .relaxed, .acquire, .release and .mmio of global
// and generic memory (PTX ISA "Memory Consistency Model"); operands as in ops_memory.cc.
//
// A lane's access is one host access with acquire or release order, which costs no more on x86 than a plain one. That
// holds for whole vectors up to 16 bytes as well: programs pass such pairs from block to block (decoupled look-back),
// and hardware never tears them apart.
#include "gpu/soft/ops/address.h"
#include "gpu/soft/ops/memory_types.h"

#if defined(__SANITIZE_THREAD__)
#define VGPUD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VGPUD_TSAN 1
#endif
#endif
#if defined(VGPUD_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace vgpud::soft::VGPUD_ISA {
namespace {

// 16 aligned bytes at once: atomic on every CPU with AVX, as Intel and AMD state. ThreadSanitizer does not know that.
#if defined(VGPUD_TSAN)
__attribute__((no_sanitize("thread"), noinline)) void Load16(const std::byte* from, std::byte* to) {
  _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_load_si128(reinterpret_cast<const __m128i*>(from)));
  __tsan_acquire(const_cast<std::byte*>(from));
}
__attribute__((no_sanitize("thread"), noinline)) void Store16(std::byte* to, const std::byte* from) {
  __tsan_release(to);
  _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_load_si128(reinterpret_cast<const __m128i*>(from)));
}
#else
// The statements keep the compiler from moving other accesses across, the CPU does not do it.
ALWAYS void Load16(const std::byte* from, std::byte* to) {
  const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  asm volatile("" ::: "memory");
  _mm_store_si128(reinterpret_cast<__m128i*>(to), v);
}
ALWAYS void Store16(std::byte* to, const std::byte* from) {
  const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  asm volatile("" ::: "memory");
  _mm_store_si128(reinterpret_cast<__m128i*>(to), v);
}
#endif

template <class U>
ALWAYS void Load(const std::byte* from, std::byte* to) {
  *reinterpret_cast<U*>(to) = __atomic_load_n(reinterpret_cast<const U*>(from), __ATOMIC_ACQUIRE);
}
template <class U>
ALWAYS void Store(std::byte* to, const std::byte* from) {
  __atomic_store_n(reinterpret_cast<U*>(to), *reinterpret_cast<const U*>(from), __ATOMIC_RELEASE);
}

constexpr uint32_t kMostBytes = 32;

// `bytes`: a power of two up to kMostBytes, to which `from` and `to` are aligned (to 16 at most).
void LoadWhole(const std::byte* from, std::byte* to, uint32_t bytes) {
  if (bytes == 4) return Load<uint32_t>(from, to);
  if (bytes == 8) return Load<uint64_t>(from, to);
  if (bytes == 2) return Load<uint16_t>(from, to);
  if (bytes == 1) return Load<uint8_t>(from, to);
  for (uint32_t at = 0; at < bytes; at += 16) Load16(from + at, to + at);
}
void StoreWhole(std::byte* to, const std::byte* from, uint32_t bytes) {
  if (bytes == 4) return Store<uint32_t>(to, from);
  if (bytes == 8) return Store<uint64_t>(to, from);
  if (bytes == 2) return Store<uint16_t>(to, from);
  if (bytes == 1) return Store<uint8_t>(to, from);
  for (uint32_t at = 0; at < bytes; at += 16) Store16(to + at, from + at);
}

template <class M, class S, bool kStore, MemSpace kSpace>
const Inst* SyncAccess(Warp& w, const Inst* i) {
  const uint32_t elements = i->aux;
  const auto size = static_cast<uint32_t>(sizeof(M)) * elements;
  std::byte* at[kLanes];
  if (!ReachAny(w, i, kSpace, size, at, kStore)) return i;
  alignas(kMostBytes) std::byte whole[kMostBytes];
  M* element = reinterpret_cast<M*>(whole);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    if constexpr (kStore) {
      for (uint32_t e = 0; e < elements; ++e) element[e] = static_cast<M>(In<S>(w, i, static_cast<int>(1 + e))[l]);
      StoreWhole(at[l], whole, size);
    } else {
      LoadWhole(at[l], whole, size);
      for (uint32_t e = 0; e < elements; ++e) Out<S>(w, i, static_cast<int>(1 + e))[l] = static_cast<S>(element[e]);
    }
  }
  NoteSync(w, i);
  return i + 1;
}

}  // namespace

OpRows SyncMemoryRows() {
// "@sync_ld.<space>.<memory type>.<slot bits>"
#define ACCESS(type, M, bits, S)                                                        \
  {"@sync_ld.global." type "." bits, SyncAccess<M, S, false, MemSpace::kGlobal>, ""}, { \
    "@sync_ld.generic." type "." bits, SyncAccess<M, S, false, MemSpace::kGeneric>, ""  \
  }
#define STORE(type, M, bits, S)                                                        \
  {"@sync_st.global." type "." bits, SyncAccess<M, S, true, MemSpace::kGlobal>, ""}, { \
    "@sync_st.generic." type "." bits, SyncAccess<M, S, true, MemSpace::kGeneric>, ""  \
  }
  static const OpRow kRows[] = {
      MEMORY_TYPE_ROWS(ACCESS, STORE),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
