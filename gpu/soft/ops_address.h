// From the addresses of a warp's lanes to host memory, checked.
#pragma once

#include "gpu/soft/ops_common.h"

namespace vgpud::soft::VGPUD_ISA {

enum class Reach { kFault, kContiguous, kUniform, kScattered };

ALWAYS bool Mapped(const Warp& w, uint64_t offset, uint32_t size) {
  return offset < w.arena_bytes && size <= w.arena_bytes - offset && w.pages[offset >> kPageShift] != 0;
}

[[gnu::noinline, gnu::cold]] static Reach GlobalFault(Warp& w, const Inst* i, const uint64_t* address, uint32_t size,
                                                      const char* access) {
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t a = address[l] + static_cast<uint64_t>(i->imm);
    if (!Mapped(w, a - kArenaVa, size)) {
      RaiseAddressFault(w, i, CuStatus::kIllegalAddress, l, a, size, access);
      return Reach::kFault;
    }
    if ((a & (size - 1)) != 0) {
      RaiseAddressFault(w, i, CuStatus::kMisalignedAddress, l, a, size, access);
      return Reach::kFault;
    }
  }
  return Reach::kScattered;
}

// offset[l]: bytes into the arena. kContiguous: only offset[0] is written, lane l is at offset[0] + l * size.
ALWAYS Reach ReachGlobal(Warp& w, const Inst* i, const uint64_t* address, uint32_t size, uint64_t* offset,
                         const char* access) {
  const uint64_t base = static_cast<uint64_t>(i->imm) - kArenaVa;
  if (w.mask == kFullMask) {
    const uint64_t first = address[0];
    uint64_t differs = 0;
    for (uint32_t l = 0; l < kLanes; ++l) differs |= (address[l] - first) ^ (uint64_t{size} * l);
    if (differs == 0) {
      const uint64_t o = first + base;
      const uint64_t last = o + uint64_t{size} * kLanes - 1;
      if ((o & (size - 1)) == 0 && o < w.arena_bytes && last < w.arena_bytes && w.pages[o >> kPageShift] != 0 &&
          w.pages[last >> kPageShift] != 0) {
        offset[0] = o;
        return Reach::kContiguous;
      }
    }
  }
  const uint64_t mine = address[__builtin_ctz(w.mask)] + base;
  uint64_t low = mine;
  uint64_t high = mine;
  uint64_t unaligned = 0;
  const uint32_t mask = w.mask;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint64_t o = (mask >> l) & 1 ? address[l] + base : mine;
    offset[l] = o;
    low = o < low ? o : low;
    high = o > high ? o : high;
    unaligned |= o;
  }
  if ((unaligned & (size - 1)) == 0 && high < w.arena_bytes && (high - low) >> kPageShift == 0 &&
      w.pages[low >> kPageShift] != 0 && w.pages[high >> kPageShift] != 0)
    return Reach::kScattered;
  return GlobalFault(w, i, address, size, access);
}

// Addresses of shared memory are offsets in 32- or 64-bit slots.
ALWAYS Reach ReachShared(Warp& w, const Inst* i, uint32_t size, uint32_t* offset, const char* access) {
  const uint32_t mask = w.mask;
  uint32_t beyond = 0;
  const auto imm = static_cast<uint32_t>(i->imm);
  if (i->flags & kAddress32) {
    const uint32_t* a = In<uint32_t>(w, i, 0);
    for (uint32_t l = 0; l < kLanes; ++l) offset[l] = a[l] + imm;
  } else {
    const uint64_t* a = In<uint64_t>(w, i, 0);
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint64_t o = a[l] + static_cast<uint64_t>(i->imm);
      offset[l] = static_cast<uint32_t>(o);
      beyond |= (mask >> l) & 1 ? static_cast<uint32_t>(o >> 32) : 0;
    }
  }
  const uint32_t mine = offset[__builtin_ctz(mask)];
  uint32_t high = 0;
  uint32_t unaligned = 0;
  uint32_t uneven = 0;
  uint32_t varies = 0;
  if (mask == kFullMask) {
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t o = offset[l];
      high = o > high ? o : high;
      unaligned |= o;
      varies |= o ^ mine;
      uneven |= (o - mine) ^ (size * l);
    }
  } else {
    uneven = 1;
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t o = (mask >> l) & 1 ? offset[l] : mine;
      offset[l] = o;
      high = o > high ? o : high;
      unaligned |= o;
      varies |= o ^ mine;
    }
  }
  if (beyond != 0 || high >= w.shared_bytes || size > w.shared_bytes - high) {
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      const uint64_t o = i->flags & kAddress32 ? offset[l] : In<uint64_t>(w, i, 0)[l] + static_cast<uint64_t>(i->imm);
      if (o >= w.shared_bytes || size > w.shared_bytes - o) {
        RaiseAddressFault(w, i, CuStatus::kIllegalAddress, l, o, size, access);
        return Reach::kFault;
      }
    }
  }
  if ((unaligned & (size - 1)) != 0) {
    uint32_t l = 0;
    while (((mask >> l) & 1) == 0 || (offset[l] & (size - 1)) == 0) ++l;
    RaiseAddressFault(w, i, CuStatus::kMisalignedAddress, l, offset[l], size, access);
    return Reach::kFault;
  }
  if (varies == 0) return Reach::kUniform;
  return uneven == 0 ? Reach::kContiguous : Reach::kScattered;
}

// One lane, any space; nullptr: not there.
ALWAYS std::byte* LaneAddress(const Warp& w, MemSpace space, uint32_t lane, uint64_t address, uint32_t size,
                              bool store) {
  uint64_t offset = address;
  if (space == MemSpace::kGeneric) {
    if (address - kArenaVa < w.arena_bytes) {
      space = MemSpace::kGlobal;
    } else if (address - kSharedWindow < kWindowBytes) {
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
  if (space == MemSpace::kShared) {
    return offset < w.shared_bytes && size <= w.shared_bytes - offset ? w.shared + offset : nullptr;
  }
  if (space == MemSpace::kLocal) {
    if (offset >= w.local_stride || size > w.local_stride - offset) return nullptr;
    return w.local_memory + static_cast<size_t>(lane) * w.local_stride + offset;
  }
  if (store || offset >= w.param_bytes || size > w.param_bytes - offset) return nullptr;
  return const_cast<std::byte*>(w.params) + offset;
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

}  // namespace vgpud::soft::VGPUD_ISA
