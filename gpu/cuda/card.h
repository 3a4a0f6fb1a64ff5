// SPDX-License-Identifier: Apache-2.0
// The GPU of this process: found once, with the one context that everything here works in. It is the primary context,
// because a driver has started its threads and opened its files when that is there, before the jail; what a guest
// program leaves behind is dropped by a reset.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "gpu/cuda/driver_api.h"
#include "gpu/gpu.h"
#include "gpu/rewrite/plan.h"

namespace vgpud::driver {

class Card {
 public:
  struct Choice {
    std::string library;  // empty: the system's
    std::string address;  // PCI, like 0000:65:00.0, or a MIG instance's name (mig.h); empty: the first
    // Kernels are made stoppable so far where their PTX is there (docs/preemption-rewrite.md).
    rewrite::Rung best_rung = rewrite::Rung::kSafepoints;
    bool oversubscribe = false;    // VFs were promised more memory than there is: allocations can be taken off the card
    bool maps_host_memory = true;  // the driver can show kernels memory of this process while they run
    Status* refused = nullptr;     // where Open says which error of the driver it failed with, if any; may be null
  };
  // Finds it and makes the context. Before the jail. An error tells what is wrong with the driver or the GPU, and what
  // to do.
  [[nodiscard]] static Result<std::unique_ptr<Card>> Open(const Choice& choice);

  const Api& api() const { return api_; }
  // Any thread, before it calls the driver: a context is current per thread.
  void Bind() const { (void)api_.CtxSetCurrent(context_); }
  // Drops all that was made in the context, its errors too, and makes it again. The jail allows what that takes. The
  // thread that calls it is bound; an error: this process can't use the GPU any more, another one can.
  [[nodiscard]] Status Reset();

  Gpu::DeviceInfo Describe() const;
  int Attribute(uint32_t attribute) const;
  const std::string& address() const { return address_; }
  // Empty: it is a whole card, as far as the driver tells.
  const std::string& mig_name() const { return mig_name_; }
  int driver_version() const { return driver_version_; }
  rewrite::Rung best_rung() const { return best_rung_; }
  // 75 is 7.5.
  uint32_t capability() const;
  uint32_t multiprocessors() const { return multiprocessors_; }
  bool maps_host_memory() const { return maps_host_memory_; }
  // Kernels can reach the guest's own memory: the driver pins and maps what is mapped in this process.
  bool shares_memory() const { return shares_memory_; }
  // [VGPU_MAPPED_VA, + VGPU_MAPPED_BYTES) of the device's addresses are kept for what guests map themselves.
  bool maps_memory() const { return maps_memory_; }
  // Allocations are made so that they can leave the card (movable.h).
  bool moves_memory() const { return moves_memory_; }
  MemoryLocation location() const { return {MemoryLocation::kDevice, device_}; }
  uint64_t memory_bytes() const { return memory_bytes_; }
  // Of the card's memory that one more context takes, by making one: a moment when nobody else takes or gives any has
  // to be chosen. 0: not known.
  uint64_t MeasureContextBytes() const;

 private:
  explicit Card(const Api& api) : api_(api) {}
  Result<void> Find(const Choice& choice);
  // The primary context, as it is now.
  Status Retain();
  bool KeepMappedAddresses() const;

  Api api_;
  rewrite::Rung best_rung_ = rewrite::Rung::kSafepoints;
  uint32_t multiprocessors_ = 0;
  bool maps_host_memory_ = true;
  bool shares_memory_ = false;
  bool maps_memory_ = false;
  bool moves_memory_ = false;
  Device device_ = 0;
  std::atomic<Context> context_ = nullptr;
  std::string name_;
  std::string address_;
  std::string mig_name_;
  int driver_version_ = 0;
  uint64_t memory_bytes_ = 0;
};

}  // namespace vgpud::driver
