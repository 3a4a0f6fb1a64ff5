// SPDX-License-Identifier: Apache-2.0
// The Gpu of a guest process, from one reset to the next.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "gpu/capability/vram_part.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

class GpuContext {
 public:
  explicit GpuContext(const std::function<std::unique_ptr<Gpu>()>& make) : make_(make), gpu_(make_()) {}

  Gpu& gpu() const { return *gpu_; }
  GpuCapabilities can() const { return gpu_->capabilities(); }
  // False: Renew has failed, and nothing can go on.
  bool exists() const { return gpu_ != nullptr; }
  // A fresh one instead. Nothing of the old one is left.
  void Renew() {
    gpu_.reset();
    gpu_ = make_();
    if (part_ != 0) CHECK(can().vram_part->UseVramPart(part_));
  }

  // Device memory has addresses of that part, also after Renew. False: its addresses stay as they are.
  bool UseVramPart(uint32_t part) {
    VramPart* const parts = can().vram_part;
    if (used_ || parts == nullptr || !parts->UseVramPart(part)) return false;
    part_ = part;
    return true;
  }

  // The guest process uses it, or not any more.
  void SetUsed(bool used) {
    if (std::exchange(used_, used) != used) change_ = used;
  }
  bool used() const { return used_; }
  // What SetUsed has changed since the last call.
  std::optional<bool> TakeChange() { return std::exchange(change_, std::nullopt); }

 private:
  const std::function<std::unique_ptr<Gpu>()>& make_;
  std::unique_ptr<Gpu> gpu_;
  bool used_ = false;
  std::optional<bool> change_;
  uint32_t part_ = 0;  // UseVramPart
};

}  // namespace vgpud::exec
