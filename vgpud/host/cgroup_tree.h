// SPDX-License-Identifier: Apache-2.0
// Where this daemon may make control groups (cgroups(7)) for its VFs: version 2 where its controllers are given to us,
// else the hierarchies of version 1 that there are. Main thread.
//
//   v2:  OWN/vgpud-ID/NAME          OWN: the group of this process; it must be the root or hold nobody else, since a
//   group
//        with controllers for its children must have no process itself: this one moves to OWN/vgpud-ID.daemon
//   v1:  MOUNT/OWN/vgpud/vgpud-ID/NAME    for each of cpu, cpuacct, memory and pids; the group vgpud stays
//
// ID stands for the runtime directory, so that the groups that a killed daemon left are known to be ours and removed.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vgpud/model/protection.h"

namespace vgpud::daemon {

enum class CgroupController { kCpu, kCpuAccount, kMemory, kPids };
inline constexpr size_t kCgroupControllers = static_cast<size_t>(CgroupController::kPids) + 1;

class CgroupTree {
 public:
  struct Host {
    std::string root = "/sys/fs/cgroup";
    std::string self;  // the text of /proc/self/cgroup
    pid_t pid = -1;    // this process
    std::string id;    // of the daemon
  };
  // Makes the daemon's own groups and removes what an earlier one left. Never fails: what cannot be had is missing in
  // the tree, and said by Describe.
  explicit CgroupTree(Host host);
  // Removes the daemon's groups where they are empty.
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  int version() const { return version_; }  // 0: none
  // The directory below which groups of VFs are made for a controller; empty: there is none.
  const std::string& parent(CgroupController controller) const { return parents_[static_cast<size_t>(controller)]; }
  // VFs have groups that divide processors among them, and this process is in none: then it is its session that
  // competes with them (RaiseOwnSession).
  bool leaves_daemon_in_root() const { return in_root_ && !parent(CgroupController::kCpu).empty(); }
  // All VFs that compute at present give way: together they then weigh as much as any other group of the host, and else
  // more.
  void SetGivesWay(bool all);
  // One row per kind of limit.
  Protections Describe() const;

 private:
  bool UseVersion2(const std::string& started_in);
  bool UseVersion1();
  void SetWeight() const;
  void RemoveLeftovers(const std::string& parent) const;

  const Host host_;
  int version_ = 0;
  bool gives_way_ = false;
  bool in_root_ = false;  // for cpu
  std::string parents_[kCgroupControllers];
  std::string why_not_[kCgroupControllers];
  std::string daemon_group_;  // v2: where this process went
  std::string own_group_;     // v2: and where it came from
};

// "vgpud-" and 16 hexadecimal digits that stand for `runtime_dir`.
std::string CgroupIdOf(std::string_view runtime_dir);

}  // namespace vgpud::daemon
