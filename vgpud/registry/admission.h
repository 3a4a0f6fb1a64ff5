// SPDX-License-Identifier: Apache-2.0
// May there be such a VF, on which GPU, and what would it do for the others? Decides, and makes nothing. Main thread.
#pragma once

#include <optional>
#include <string>

#include "vgpud/model/report.h"
#include "vgpud/placement/waiting_room.h"
#include "vgpud/registry/served_gpus.h"
#include "vgpud/registry/vf_limits.h"
#include "vgpud/registry/vf_registry.h"
#include "vgpud/registry/vf_wish.h"

namespace vgpud::daemon {

class Admission {
 public:
  // All outlive this. `usual`: where VFs go that say nothing.
  Admission(const ServedGpus& gpus, const VfRegistry& vfs, const VfLimits& limits, Placement usual)
      : gpus_(gpus), vfs_(vfs), limits_(limits), usual_(usual) {}

  // A number for a new VF of that name, `wanted` if that is free; or why there can be none. Some are kept for root.
  ApiResult<VfId> FreeNumber(const std::string& name, const Sharer& whose) const;
  // The same of one that was there before.
  ApiResult<VfId> FreeNumber(const std::string& name, VfId wanted) const;
  // The same of one that is to be made again, if there is room for it: on its GPU, and in the memory of the host.
  ApiResult<VfId> RoomAgain(const VfDefinition& definition) const;
  struct Choice {
    VfId id{};
    ServedGpu* gpu = nullptr;
    VfSpec spec;      // as it will be there
    std::string why;  // there
  };
  // Where it goes; not to one of `taken`.
  ApiResult<Choice> Locate(const VfWish& wish, const WaitingRoom::Gpus& taken = {}) const;
  // What making it there would do for the other VFs, or why it would be refused.
  ApiResult<Difference> PreviewOn(const ServedGpu& gpu, VfId id, const VfSpec& spec) const;
  // The same, where it would be placed.
  ApiResult<ChangeReport> Preview(const VfWish& wish) const;
  // Could it be made if there were no other VF?
  ApiResult<ChangeReport> PreviewAlone(const VfWish& wish) const;
  // Why it could never be on `gpu`, even if there were no other VF.
  std::optional<ApiError> WhyNever(const ServedGpu& gpu, const VfWish& wish) const;

 private:
  // Is there memory for it?
  ApiResult<void> CheckVram(const ServedGpu& gpu, const VfSpec& spec) const;

  const ServedGpus& gpus_;
  const VfRegistry& vfs_;
  const VfLimits& limits_;
  const Placement usual_;
};

}  // namespace vgpud::daemon
