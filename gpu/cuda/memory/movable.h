// SPDX-License-Identifier: Apache-2.0
// Allocations that can leave the card and come back to the same addresses (gpu/capability/evictable.h): the driver's
// virtual memory management keeps the address while the memory behind it comes and goes. Small allocations are not
// worth a page of their own, and stay on the card.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>

#include "base/mapping.h"
#include "gpu/capability/evictable.h"
#include "gpu/cuda/card.h"
#include "gpu/cuda/lanes.h"

namespace vgpud::driver {

// The thread that calls the Gpu.
class Movable final : public Evictable {
 public:
  // Both outlive it.
  Movable(const Card& card, Lanes& lanes) : card_(card), lanes_(lanes) {}
  // What is left is given back.
  ~Movable() override;
  Movable(const Movable&) = delete;
  Movable& operator=(const Movable&) = delete;

  // Allocations from so many bytes on are made here.
  static constexpr uint64_t kLeast = uint64_t{1} << 20;
  // Where guests map nothing themselves.
  static uint64_t first_address();

  // An address with memory behind it, or without as long as the card has none. kOutOfMemory: no addresses are left.
  GpuResult<GpuVa> Alloc(uint64_t bytes);
  // nullopt: it is none of these. Bytes that it had been asked for.
  std::optional<uint64_t> Free(GpuVa address);
  // Where the host has [address, address + bytes) now, to be read, or written as well; empty: it is on the card, or
  // none of these. kOutOfMemory.
  GpuResult<std::span<std::byte>> OffCard(GpuVa address, uint64_t bytes, bool written);

  uint64_t on_card() const override { return on_card_; }
  uint64_t off_card() const override { return off_card_; }
  GpuResult<uint64_t> Evict() override;
  GpuResult<Back> BringBack(const StopWord& stop, uint64_t* bytes) override;

 private:
  struct Block {
    uint64_t bytes = 0;       // asked for
    uint64_t whole = 0;       // of pages
    MemoryHandle handle = 0;  // 0: it is not on the card
    Mapping host;             // what it contains, where that is not what the card has; not mapped: nothing was written
    uint64_t returned = 0;    // of that, what the card has already
    bool made = false;        // it has its place again, while other blocks have none yet
  };
  bool IsBack(const Block& block) const { return block.handle != 0 && block.host.data() == nullptr && !block.made; }
  std::optional<uint64_t> FindAddresses(uint64_t bytes) const;
  // Memory for a block. False: the card has none.
  GpuResult<bool> Make(Block& block);
  GpuResult<void> Show(uint64_t address, const Block& block);
  void GiveBack(uint64_t address, Block& block);
  GpuResult<void> EvictBlock(uint64_t address, Block& block);
  GpuResult<Back> MakeAll(const StopWord& stop);
  GpuResult<Back> GiveBackMade(const StopWord& stop);
  void Count();
  template <class F>
  GpuResult<void> Copy(const char* what, F start);

  const Card& card_;
  Lanes& lanes_;
  std::map<uint64_t, Block> blocks_;  // by address
  uint64_t on_card_ = 0, off_card_ = 0;
  bool no_room_ = false;  // what has its place again is being given back
};

}  // namespace vgpud::driver
