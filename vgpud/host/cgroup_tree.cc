// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/cgroup_tree.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "vgpud/host/cgroup_file.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr char kSharedGroup[] = "/vgpud";
// systemd's DelegateSubgroup= in our unit: it starts vgpud here, beside the groups of VFs, where it can do so again
// while those have processes.
constexpr std::string_view kOwnSubgroup = "/vgpud-daemon";
constexpr uint64_t kMostWeight = 10'000;  // of version 2
// Of a group of which nothing is said, in version 2 and in version 1.
constexpr uint64_t kOrdinaryWeight = 100;
constexpr uint64_t kOrdinaryShares = 1024;
// What there is instead (vgpud/vf/cpu_account.cc, gpu/exec/guard.cc).
constexpr const char* kInstead[kCgroupControllers] = {
    ("instead threads of a VF that computes too much outside of its turns get the lowest priority (nice 19), under an "
     "ordinary user for as long as they live, and processors are not divided among VFs"),
    "instead the processes that there are, and those that vgpud saw end, are added up",
    "instead each executor has a limit of its own (RLIMIT_DATA)",
    "instead an executor with more threads than it can need is killed",
};
constexpr const char* kNames[kCgroupControllers] = {"cpu", "cpuacct", "memory", "pids"};
// Of version 2, where cpu does the accounts too.
constexpr const char* kNames2[kCgroupControllers] = {"cpu", "cpu", "memory", "pids"};
constexpr const char* kProtections[kCgroupControllers] = {"cgroup-cpu", "cgroup-cpu-account", "cgroup-memory",
                                                          "cgroup-pids"};

bool HasWord(const std::string& text, const std::string& word, char separator) {
  for (size_t at = 0; at <= text.size();) {
    size_t end = text.find_first_of(std::string("\n") + separator, at);
    if (end == std::string::npos) end = text.size();
    if (text.compare(at, end - at, word) == 0) return true;
    at = end + 1;
  }
  return false;
}

struct Line {
  std::string controllers;  // "cpu,cpuacct", "name=systemd"; empty: version 2
  std::string path;
};
// "NUMBER:CONTROLLERS:PATH" (cgroups(7)).
std::vector<Line> ParseSelf(const std::string& text) {
  std::vector<Line> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    // A path outside of this process's cgroup namespace leads nowhere here.
    if (path.find("..") == std::string::npos) lines.push_back({line.substr(first + 1, second - first - 1), path});
  }
  return lines;
}

bool MakeGroup(const std::string& path, std::string* why) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return true;
  *why = fmt::format("cannot make {}: {}", path, std::make_error_code(static_cast<std::errc>(errno)).message());
  return false;
}

void Write(const std::string& path, uint64_t value) {
  if (const auto set = WriteCgroupFile(path, fmt::format("{}", value)); !set)
    LOG(kWarning, "control groups: {}", set.error().context);
}

}  // namespace

std::string CgroupIdOf(std::string_view runtime_dir) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : runtime_dir) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("vgpud-{:016x}", hash);
}

CgroupTree::CgroupTree(Host host) : host_(std::move(host)) {
  for (std::string& why : why_not_) why = fmt::format("no control groups at {}", host_.root);
  for (const Line& line : ParseSelf(host_.self))
    if (line.controllers.empty() && UseVersion2(host_.root + line.path)) version_ = 2;
  if (version_ == 0 && UseVersion1()) version_ = 1;
  if (const std::string& memory = parent(CgroupController::kMemory); version_ == 1 && !memory.empty())
    (void)WriteCgroupFile(memory + "/memory.use_hierarchy", "1");  // refused where it always is
  for (const std::string& at : parents_)
    if (!at.empty()) RemoveLeftovers(at);
  SetWeight();
}

// All VFs together weigh as much as their GPU threads alone would at a nice value of -10, on every processor; among
// themselves they are equal, whatever each of them starts.
void CgroupTree::SetGivesWay(bool all) {
  if (std::exchange(gives_way_, all) != all) SetWeight();
}

void CgroupTree::SetWeight() const {
  const std::string& cpu = parent(CgroupController::kCpu);
  if (cpu.empty()) return;
  const uint64_t processors = static_cast<uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  if (version_ == 2)
    return Write(cpu + "/cpu.weight",
                 gives_way_ ? kOrdinaryWeight : std::min<uint64_t>(kMostWeight, 1'000 * processors));
  const uint64_t shares = gives_way_ ? kOrdinaryShares : std::min<uint64_t>(262'144, 10'240 * processors);
  Write(cpu + "/cpu.shares", shares);
  Write(fs::path(cpu).parent_path().string() + "/cpu.shares", shares);
}

CgroupTree::~CgroupTree() {
  for (const std::string& at : parents_)
    if (!at.empty()) {
      RemoveLeftovers(at);
      ::rmdir(at.c_str());
    }
  if (daemon_group_.empty()) return;
  (void)WriteCgroupFile(own_group_ + "/cgroup.procs", fmt::format("{}", host_.pid));
  ::rmdir(daemon_group_.c_str());
}

bool CgroupTree::UseVersion2(const std::string& started_in) {
  const bool in_subgroup = started_in.ends_with(kOwnSubgroup);
  const std::string own = started_in.substr(0, started_in.size() - (in_subgroup ? kOwnSubgroup.size() : 0));
  const std::string offered = ReadCgroupFile(own + "/cgroup.controllers");
  const auto refuse = [&](const std::string& why) {
    for (std::string& each : why_not_) each = why;
    return false;
  };
  std::string wanted;
  for (const char* name : {"cpu", "memory", "pids"})
    if (HasWord(offered, name, ' ')) wanted += fmt::format("{}+{}", wanted.empty() ? "" : " ", name);
  if (wanted.empty()) return refuse(fmt::format("{} has no controllers for us (systemd: Delegate=yes)", own));
  std::string why;
  const std::string parent_dir = own + "/" + host_.id;
  const std::string daemon_dir = in_subgroup ? started_in : parent_dir + ".daemon";
  const bool is_root = in_root_ = own == host_.root;
  if (!is_root && !in_subgroup) {
    // Only the root may have both processes and children with controllers.
    if (ReadCgroupFile(own + "/cgroup.procs") != fmt::format("{}\n", host_.pid))
      return refuse(
          fmt::format("{} has other processes too: start vgpud as a service of its own (systemd: Delegate=yes)", own));
    if (!MakeGroup(daemon_dir, &why)) return refuse(why);
    if (const auto moved = WriteCgroupFile(daemon_dir + "/cgroup.procs", fmt::format("{}", host_.pid)); !moved)
      return refuse(moved.error().context);
    daemon_group_ = daemon_dir;
    own_group_ = own;
  }
  if (const auto given = WriteCgroupFile(own + "/cgroup.subtree_control", wanted); !given)
    return refuse(given.error().context);
  // Beside the group of all VFs, which weighs much: no less than that can.
  if (!is_root && HasWord(offered, "cpu", ' ')) Write(daemon_dir + "/cpu.weight", kMostWeight);
  if (!is_root && ReadCgroupFile(own + "/memory.oom.group") == "1\n")
    LOG(kWarning, "control groups: where all VFs together run out of memory, {} ends as a whole (systemd: OOMPolicy=)",
        own);
  if (!MakeGroup(parent_dir, &why)) return refuse(why);
  if (const auto given = WriteCgroupFile(parent_dir + "/cgroup.subtree_control", wanted); !given)
    return refuse(given.error().context);
  for (size_t c = 0; c < kCgroupControllers; ++c) {
    if (HasWord(offered, kNames2[c], ' '))
      parents_[c] = parent_dir;
    else
      why_not_[c] = fmt::format("{} lacks the controller {}", own, kNames2[c]);
  }
  return true;
}

bool CgroupTree::UseVersion1() {
  bool any = false;
  for (const Line& line : ParseSelf(host_.self)) {
    for (size_t c = 0; c < kCgroupControllers; ++c) {
      if (!HasWord(line.controllers, kNames[c], ',')) continue;
      if (static_cast<CgroupController>(c) == CgroupController::kCpu) in_root_ = line.path.empty();
      std::error_code ignored;
      std::string mount = host_.root + "/" + line.controllers;
      if (!fs::is_directory(mount, ignored)) mount = host_.root + "/" + kNames[c];
      std::string own = mount + line.path;
      if (!fs::is_directory(own, ignored)) own = mount;  // the path of another namespace
      // In this one, which stays, groups come and go without the capability that the root of the hierarchy asks for.
      own += kSharedGroup;
      if (MakeGroup(own, &why_not_[c]) && MakeGroup(own + "/" + host_.id, &why_not_[c])) {
        parents_[c] = own + "/" + host_.id;
        any = true;
      }
    }
  }
  return any;
}

// Those that still have processes stay: VMs may live on such a VF.
void CgroupTree::RemoveLeftovers(const std::string& parent) const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.is_directory(ignored)) ::rmdir(entry.path().c_str());
}

Protections CgroupTree::Describe() const {
  Protections rows;
  for (size_t c = 0; c < kCgroupControllers; ++c)
    rows.push_back({kProtections[c], !parents_[c].empty(),
                    parents_[c].empty() ? fmt::format("{}; {}", why_not_[c], kInstead[c]) : std::string()});
  return rows;
}

}  // namespace vgpud::daemon
