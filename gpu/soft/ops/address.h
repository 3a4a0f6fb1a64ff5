// SPDX-License-Identifier: Apache-2.0
// From the addresses of a warp's lanes to host memory, checked.
#pragma once

#include "gpu/soft/ops/common.h"

namespace vgpud::soft::VGPUD_ISA {

ALWAYS bool Mapped(const Warp& w, uint64_t offset, uint32_t size) {
  return offset < w.arena_bytes && size <= w.arena_bytes - offset && w.pages[offset >> kPageShift] != 0 &&
         w.pages[(offset + size - 1) >> kPageShift] != 0;
}

// offset[l]: bytes into the arena, of inactive lanes those of an active one. False: a fault was raised.
ALWAYS bool ReachGlobal(Warp& w, const Inst* i, uint32_t size, uint64_t* offset, const char* access) {
  const uint64_t* address = In<uint64_t>(w, i, 0);
  const uint64_t base = static_cast<uint64_t>(i->imm) - kArenaVa;
  const uint32_t mask = w.mask;
  const uint64_t mine = address[__builtin_ctz(mask)] + base;
  uint64_t low = mine;
  uint64_t high = mine;
  uint64_t unaligned = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint64_t o = (mask >> l) & 1 ? address[l] + base : mine;
    offset[l] = o;
    low = o < low ? o : low;
    high = o > high ? o : high;
    unaligned |= o;
  }
  if ((unaligned & (size - 1)) == 0 && high < w.arena_bytes && (high - low) >> kPageShift == 0 &&
      w.pages[low >> kPageShift] != 0 && w.pages[high >> kPageShift] != 0)
    return true;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const bool mapped = Mapped(w, offset[l], size);
    if (mapped && (offset[l] & (size - 1)) == 0) continue;
    RaiseAddressFault(w, i, mapped ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, l, offset[l] + kArenaVa,
                      size, access);
    return false;
  }
  return true;
}

// The common case of ReachShared: whole warps, addresses of 32 bits, all lanes inside and aligned.
ALWAYS bool AllInShared(const Warp& w, const Inst* i, uint32_t size, uint32_t* offset) {
  if (w.mask != kFullMask || !(i->flags & kAddress32)) return false;
  const uint32_t* address = In<uint32_t>(w, i, 0);
  const auto base = static_cast<uint32_t>(i->imm);
  uint32_t high = 0;
  uint32_t all = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint32_t o = address[l] + base;
    offset[l] = o;
    high = o > high ? o : high;
    all |= o;
  }
  return (all & (size - 1)) == 0 && high < w.shared_bytes && size <= w.shared_bytes - high;
}

// offset[l]: bytes into the shared memory, for active lanes. False: a fault was raised.
ALWAYS bool ReachShared(Warp& w, const Inst* i, uint32_t size, uint32_t* offset, const char* access) {
  if (AllInShared(w, i, size, offset)) return true;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t o = i->flags & kAddress32
                           ? static_cast<uint32_t>(In<uint32_t>(w, i, 0)[l] + static_cast<uint32_t>(i->imm))
                           : In<uint64_t>(w, i, 0)[l] + static_cast<uint64_t>(i->imm);
    const bool inside = o < w.shared_bytes && size <= w.shared_bytes - o;
    if (!inside || (o & (size - 1)) != 0) {
      RaiseAddressFault(w, i, inside ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, l, o, size, access);
      return false;
    }
    offset[l] = static_cast<uint32_t>(o);
  }
  return true;
}

// `offset`: in the shared memory of the block or of another one of its cluster (kClusterWindowBytes).
ALWAYS std::byte* SharedAddress(const Warp& w, uint64_t offset, uint32_t size) {
  if (offset < w.shared_bytes) return size <= w.shared_bytes - offset ? w.shared + offset : nullptr;
  const uint64_t within = offset % kWindowBytes;
  const uint64_t rank = offset / kWindowBytes - 1;
  if (rank >= w.cta->cluster_size || within >= w.shared_bytes || size > w.shared_bytes - within) return nullptr;
  return w.cta->peers[rank]->shared + within;
}

// One lane, any space; nullptr: not there.
ALWAYS std::byte* LaneAddress(const Warp& w, MemSpace space, uint32_t lane, uint64_t address, uint32_t size,
                              bool store) {
  uint64_t offset = address;
  if (space == MemSpace::kGeneric) {
    if (address - kArenaVa < w.arena_bytes) {
      space = MemSpace::kGlobal;
    } else if (address - kSharedWindow < kClusterWindowBytes) {
      space = MemSpace::kShared;
      offset = address - kSharedWindow;
    } else if (address - kLocalWindow < kWindowBytes) {
      space = MemSpace::kLocal;
      offset = address - kLocalWindow;
    } else if (address - kParamWindow < kWindowBytes) {
      space = MemSpace::kParamRegister;
      offset = address - kParamWindow;
    } else {
      return nullptr;
    }
  }
  if (space == MemSpace::kGlobal) {
    const uint64_t o = address - kArenaVa;
    return Mapped(w, o, size) ? w.arena + o : nullptr;
  }
  if (space == MemSpace::kShared) return SharedAddress(w, offset, size);
  if (space == MemSpace::kLocal) {
    if (offset >= w.local_stride || size > w.local_stride - offset) return nullptr;
    return w.local_memory + static_cast<size_t>(lane) * w.local_stride + offset;
  }
  if (store || offset >= w.param_bytes || size > w.param_bytes - offset) return nullptr;
  return const_cast<std::byte*>(w.params) + offset;
}

// A run of bytes at a generic address; nullptr: it is not all there.
ALWAYS std::byte* Stretch(const Warp& w, uint32_t lane, uint64_t address, uint32_t bytes, bool store) {
  std::byte* at = LaneAddress(w, MemSpace::kGeneric, lane, address, bytes, store);
  if (at == nullptr) return nullptr;
  for (uint64_t page = 1; page << kPageShift < bytes; ++page)
    if (LaneAddress(w, MemSpace::kGeneric, lane, address + (page << kPageShift), 1, store) == nullptr) return nullptr;
  return LaneAddress(w, MemSpace::kGeneric, lane, address + bytes - 1, 1, store) != nullptr ? at : nullptr;
}

// at[l] for the active lanes. False: a fault was raised.
ALWAYS bool ReachAny(Warp& w, const Inst* i, MemSpace space, uint32_t size, std::byte** at, bool store) {
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    uint64_t address = i->flags & kAddress32
                           ? static_cast<uint32_t>(In<uint32_t>(w, i, 0)[l] + static_cast<uint32_t>(i->imm))
                           : In<uint64_t>(w, i, 0)[l] + static_cast<uint64_t>(i->imm);
    at[l] = LaneAddress(w, space, l, address, size, store);
    const bool missing = at[l] == nullptr;
    if (missing || (address & (size - 1)) != 0) {
      RaiseAddressFault(w, i, missing ? CuStatus::kIllegalAddress : CuStatus::kMisalignedAddress, l, address, size,
                        store ? "store" : "load");
      return false;
    }
  }
  return true;
}

// offset[l]: bytes into the local memory of the warp, for active lanes. False: a fault was raised.
ALWAYS bool ReachLocal(Warp& w, const Inst* i, uint32_t size, uint32_t* offset, bool store) {
  const uint32_t mask = w.mask;
  alignas(64) uint64_t at[kLanes];
  if (i->flags & kAddress32) {
    const uint32_t* a = In<uint32_t>(w, i, 0);
    for (uint32_t l = 0; l < kLanes; ++l) at[l] = static_cast<uint32_t>(a[l] + static_cast<uint32_t>(i->imm));
  } else {
    const uint64_t* a = In<uint64_t>(w, i, 0);
    for (uint32_t l = 0; l < kLanes; ++l) at[l] = a[l] + static_cast<uint64_t>(i->imm);
  }
  uint64_t high = 0;
  uint64_t all = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint64_t o = (mask >> l) & 1 ? at[l] : 0;
    high = o > high ? o : high;
    all |= o;
    offset[l] = l * w.local_stride + static_cast<uint32_t>(o);
  }
  if ((all & (size - 1)) == 0 && high < w.local_stride && size <= w.local_stride - high) return true;
  std::byte* unused[kLanes];
  return ReachAny(w, i, MemSpace::kLocal, size, unused, store);
}
// Do the generic addresses of all active lanes lie where global memory is?
ALWAYS bool AllGlobal(const Warp& w, const Inst* i) {
  const uint64_t* address = In<uint64_t>(w, i, 0);
  const uint64_t base = static_cast<uint64_t>(i->imm) - kArenaVa;
  uint64_t high = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint64_t o = (w.mask >> l) & 1 ? address[l] + base : 0;
    high = o > high ? o : high;
  }
  return high < w.arena_bytes;
}

// ReachAny for atomic operations, which there are none of on a thread's own memory.
ALWAYS bool ReachAtomic(Warp& w, const Inst* i, MemSpace space, uint32_t size, std::byte** at) {
  if (space == MemSpace::kGeneric && !(i->flags & kAddress32)) {
    for (uint32_t m = w.mask; m != 0; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      const uint64_t address = In<uint64_t>(w, i, 0)[l] + static_cast<uint64_t>(i->imm);
      if (address - kLocalWindow >= kWindowBytes && address - kParamWindow >= kWindowBytes) continue;
      RaiseAddressFault(w, i, CuStatus::kInvalidAddressSpace, l, address, size, "atomic operation");
      return false;
    }
  }
  return ReachAny(w, i, space, size, at, true);
}

}  // namespace vgpud::soft::VGPUD_ISA
