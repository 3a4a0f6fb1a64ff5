// SPDX-License-Identifier: Apache-2.0
// One GPU that the daemon serves: its scheduler thread, its policy and settings, what is counted of it, and what its
// VFs need of it. Which VFs there are is known by their registry (vf_registry.h). Main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "vgpud/config/config.h"
#include "vgpud/history/telemetry.h"
#include "vgpud/host/topology.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {

// What the daemon has for all its GPUs and VFs, which it outlives.
struct DaemonParts {
  EventLoop& loop;
  TaskQueue& replies;
  const Config& config;
  const VfConfinement& confinement;
  CgroupTree& cgroups;
  Worker& mover;
  Keeper* keeper = nullptr;                        // null: VFs end with this process
  const Topology* topology = nullptr;              // null: not looked at
  std::shared_ptr<Chronicle> chronicle = nullptr;  // VfService makes it
};

class ServedGpu {
 public:
  struct Events {
    std::function<void(VfId)> on_parked;                   // the scheduler has parked it
    std::function<void(const std::string& vf)> on_failed;  // one that served
    std::function<void(const ServedGpu&)> on_turnout;      // a VF has joined or left those who share this GPU
  };
  // With no VF. Error: the policy can't be made of these settings.
  [[nodiscard]] static Result<std::unique_ptr<ServedGpu>> Make(const DaemonParts& around, GpuConfig config,
                                                               Events events);
  ServedGpu(const ServedGpu&) = delete;
  ServedGpu& operator=(const ServedGpu&) = delete;

  const std::string& name() const { return config_.name; }
  const GpuConfig& config() const { return config_; }
  // As they are in force, or will be at the next turn boundary.
  const GpuSettings& settings() const { return settings_; }
  void SetSettings(const GpuSettings& settings) { settings_ = settings; }
  uint64_t revision() const { return RevisionOf(name(), settings_); }
  // What VFs can be made with from now on.
  const Profiles& profiles() const { return profiles_; }
  void SetProfiles(Profiles profiles) { profiles_ = std::move(profiles); }

  GpuThread& thread() { return *thread_; }
  const GpuThread& thread() const { return *thread_; }
  Telemetry& telemetry() { return *telemetry_; }
  const Telemetry& telemetry() const { return *telemetry_; }
  // For its VFs, which it outlives.
  VfSurroundings& of_vfs() { return *of_vfs_; }
  // The shares of its VFs may be other ones now.
  void Turnout() { of_vfs_->on_turnout(); }
  // When the last VF is gone: no more turns.
  void EndThread() { thread_.reset(); }

  // `room`: of it, without a new VF.
  GpuReport Report(const GpuRoom& room, Protections protections) const;

 private:
  explicit ServedGpu(GpuConfig config)
      : config_(std::move(config)), settings_(config_.settings), profiles_(config_.profiles) {}

  const GpuConfig config_;
  GpuSettings settings_;
  Profiles profiles_;
  std::unique_ptr<GpuThread> thread_;
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<VfSurroundings> of_vfs_;
};

}  // namespace vgpud::daemon
