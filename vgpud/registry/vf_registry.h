// SPDX-License-Identifier: Apache-2.0
// The VFs that are there, by number, and those that are lost. Main thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vgpud/model/api_error.h"
#include "vgpud/model/settings.h"
#include "vgpud/placement/placement.h"
#include "vgpud/registry/lost_vfs.h"
#include "vgpud/registry/served_gpu.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {

class VfRegistry {
 public:
  const std::map<VfId, std::shared_ptr<Vf>>& all() const { return vfs_; }
  // Null: there is no such VF.
  std::shared_ptr<Vf> Find(const std::string& name) const;
  std::shared_ptr<Vf> Find(VfId id) const;
  // An error if there is no such VF, or it is lost: then it says why, and how it comes back.
  ApiResult<std::shared_ptr<Vf>> Get(const std::string& name) const;
  LostVfs& lost() { return lost_; }
  const LostVfs& lost() const { return lost_; }
  // Those on `gpu`, in the order of their numbers.
  std::vector<std::shared_ptr<Vf>> On(const ServedGpu& gpu) const;
  // `wanted` if it is free, else the lowest number that is; none: all are taken.
  std::optional<VfId> FreeNumber(VfId wanted) const;
  // The number must be free.
  void Add(std::shared_ptr<Vf> vf);
  void Remove(VfId id) { vfs_.erase(id); }
  void Clear() { vfs_.clear(); }

  // From now on there are no new VFs: vgpud is stopping.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // The settings of `gpu` and of the VFs that share it.
  Settings SettingsOn(const ServedGpu& gpu) const;
  // What `gpu` has to give, and what its VFs have been promised of it.
  GpuRoom RoomOn(const ServedGpu& gpu) const;
  // Tells each VF on `gpu` the slice and the share that it may expect now.
  void TellExpectedShares(const ServedGpu& gpu) const;

 private:
  std::map<VfId, std::shared_ptr<Vf>> vfs_;
  LostVfs lost_;
  bool closed_ = false;
};

}  // namespace vgpud::daemon
