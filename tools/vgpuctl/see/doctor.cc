// SPDX-License-Identifier: Apache-2.0
// vgpuctl doctor
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/host_facts.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

constexpr const char* kUsualCdiFile = "/run/cdi/vgpud.json";
constexpr const char* kGresConf = "/etc/slurm/gres.conf";
constexpr const char* kLibvirtDaemons[] = {"/usr/sbin/virtqemud", "/usr/sbin/libvirtd"};
constexpr const char* kSlurmDaemons[] = {"/usr/sbin/slurmd", "/usr/local/sbin/slurmd"};

enum class Verdict { kOk, kWarn, kFail, kNotHere };

struct Diagnosis {
  Verdict verdict;
  std::string what;
  std::string fix = {};
};

Diagnosis Ok(std::string what) { return {Verdict::kOk, std::move(what)}; }

// What was asked of vgpud, once for all checks.
struct Seen {
  const CtlArgs& args;
  tl::expected<Answer, Failure> vfs, gpus, stats, config;
  CtlJson List(const tl::expected<Answer, Failure>& answer, const char* list) const {
    return answer ? answer->json.value(list, CtlJson::array()) : CtlJson::array();
  }
};

bool IsThere(const char* path) { return ::access(path, F_OK) == 0; }

std::string Whole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Diagnosis CheckHost(const Seen& seen) {
  const unsigned processors = std::thread::hardware_concurrency();
  const size_t gpus = std::max<size_t>(1, seen.List(seen.gpus, "gpus").size());
  if (processors > gpus) return Ok(fmt::format("{} processors for {} GPU{}", processors, gpus, gpus == 1 ? "" : "s"));
  return {Verdict::kWarn,
          fmt::format("{} processors for {} GPUs: the scheduler shares them with what it schedules", processors, gpus),
          "give this host more processors than GPUs"};
}

Diagnosis CheckDaemon(const Seen& seen) {
  if (seen.vfs) return Ok(fmt::format("vgpud answers, {} VFs", seen.List(seen.vfs, "vfs").size()));
  const std::string& text = seen.vfs.error().text;
  return {Verdict::kFail, text,
          seen.vfs.error().code == kExitUnreachable ? "systemctl start vgpud, or vgpud &" : "see the line itself"};
}

Diagnosis CheckVfs(const Seen& seen) {
  std::vector<std::string> bad;
  for (const CtlJson& vf : seen.List(seen.vfs, "vfs"))
    for (const char* const state : {"failed", "lost", "parked"})
      if (Text(vf, "state") == state) bad.push_back(fmt::format("{} is {}", Text(vf, "name"), state));
  if (bad.empty()) return Ok("no VF is failed, lost or parked");
  return {Verdict::kWarn, Join(bad),
          "vgpuctl show NAME says why; vgpuctl reset NAME, with --force where it is failed or lost"};
}

Diagnosis CheckPriority(const Seen& seen) {
  for (const CtlJson& gpu : seen.List(seen.gpus, "gpus"))
    if (!gpu.value("scheduler_fifo", false))
      return {Verdict::kWarn,
              fmt::format("the scheduler of {} has no real-time priority: slices end late where the host is busy",
                          Text(gpu, "name")),
              "run vgpud as its service, as root, or with LimitRTPRIO=99 (docs/systemd.md)"};
  return Ok("schedulers have real-time priority");
}

// All GPUs have the same protections but those of the cards.
Diagnosis CheckProtections(const Seen& seen) {
  std::set<std::string> missing;
  for (const CtlJson& gpu : seen.List(seen.gpus, "gpus"))
    for (const CtlJson& row : gpu.value("protections", CtlJson::array()))
      if (!row.value("in_force", true)) missing.insert(Text(row, "name"));
  if (missing.empty()) return Ok("all protections between guests and the host are in force");
  return {Verdict::kWarn, fmt::format("protections that are not in force: {}", Join({missing.begin(), missing.end()})),
          "vgpuctl gpu says why of each (docs/isolation.md)"};
}

Diagnosis CheckHistory(const Seen& seen) {
  CtlJson all = seen.stats ? seen.stats->json.value("gpus", CtlJson::array()) : CtlJson::array();
  if (all.empty() && seen.stats) all.push_back(seen.stats->json);
  for (const CtlJson& gpu : all)
    if (const CtlJson history = gpu.value("history", CtlJson::object()); Text(history, "state") != "on")
      return {Verdict::kWarn,
              fmt::format("the usage history is {}: {}", Text(history, "state"), Text(history, "error")),
              "repair or move that file, then restart vgpud (docs/observability.md)"};
  return Ok("the usage history is written");
}

Diagnosis CheckPermissions(const Seen& seen) {
  std::vector<std::string> shut;
  for (const CtlJson& vf : seen.List(seen.vfs, "vfs"))
    if (const std::string socket = Text(vf, "channel_socket"); !socket.empty() && ::access(socket.c_str(), W_OK) != 0)
      shut.push_back(Text(vf, "name"));
  if (shut.empty()) return Ok("programs of this user may use every VF");
  return {Verdict::kWarn, fmt::format("programs of this user may not use {}", Join(shut)),
          "vgpuctl create --owner USER, when the VF is made (docs/containers.md)"};
}

// That vgpud keeps; empty: it keeps none.
std::string KeptCdiFile(const Seen& seen) {
  for (const CtlJson& value : seen.List(seen.config, "values"))
    if (Text(value, "key") == "daemon.cdi_file") return Text(value, "value");
  return "";
}

Diagnosis CheckCdi(const Seen& seen) {
  const std::string kept = KeptCdiFile(seen), path = kept.empty() ? kUsualCdiFile : kept;
  if (!IsThere(path.c_str()) && !kept.empty() && !seen.List(seen.vfs, "vfs").empty())
    return {Verdict::kFail, fmt::format("containers get no VF: vgpud could not write {}", path),
            "vgpud's log says why (journalctl -u vgpud)"};
  if (!IsThere(path.c_str()))
    return {Verdict::kNotHere, fmt::format("containers get no VF: there is no {}", path),
            "cdi_file in [daemon] of vgpud.toml keeps one (docs/containers.md)"};
  std::set<std::string> devices;
  const CtlJson file = CtlJson::parse(Whole(path), nullptr, false);
  if (!file.is_object())
    return {Verdict::kFail, fmt::format("{} is not JSON: container engines refuse it", path),
            "vgpuctl cdi --file " + path};
  for (const CtlJson& device : file.value("devices", CtlJson::array())) devices.insert(Text(device, "name"));
  std::vector<std::string> missing;
  for (const CtlJson& vf : seen.List(seen.vfs, "vfs"))
    if (!Text(vf, "channel_socket").empty() && !devices.contains(Text(vf, "name"))) missing.push_back(Text(vf, "name"));
  if (missing.empty()) return Ok(fmt::format("{} has all VFs", path));
  return {Verdict::kWarn, fmt::format("{} does not have {}", path, Join(missing)), "vgpuctl cdi --file " + path};
}

template <size_t kPaths>
bool IsOneThere(const char* const (&paths)[kPaths]) {
  return std::any_of(std::begin(paths), std::end(paths), &IsThere);
}

Diagnosis CheckLibvirt(const Seen& seen) {
  if (!IsOneThere(kLibvirtDaemons))
    return {Verdict::kNotHere, "libvirt is not installed", "only for domains of libvirt"};
  if (::access((seen.args.hooks_dir + "/vgpud").c_str(), X_OK) == 0) return Ok("libvirt calls the hook of vgpud");
  return {Verdict::kWarn, fmt::format("libvirt does not know vgpud: there is no {}/vgpud", seen.args.hooks_dir),
          "vgpuctl hook --install (docs/libvirt.md)"};
}

Diagnosis CheckQemu(const Seen&) {
  if (!IsThere(kDefaultQemu))
    return {Verdict::kNotHere, fmt::format("there is no {}", kDefaultQemu),
            fmt::format("only for virtual machines: QEMU {} or newer (docs/packages.md)", kQemuMin)};
  const QemuFacts qemu = AskQemu(kDefaultQemu);
  const std::string fix = fmt::format("QEMU {} or newer, with vfio-user-pci (docs/packages.md)", kQemuMin);
  if (!qemu.version)
    return {Verdict::kWarn, fmt::format("{} is not run: others than root may change it", kDefaultQemu),
            "chown root and chmod go-w"};
  if (qemu.version->empty()) return {Verdict::kFail, fmt::format("{} does not run", kDefaultQemu), fix};
  if (IsOldQemu(*qemu.version))
    return {Verdict::kWarn,
            fmt::format("QEMU is {}, which has no vfio-user: virtual machines can't have VFs", *qemu.version), fix};
  if (!qemu.has_device.value_or(true)) return {Verdict::kWarn, "QEMU was built without vfio-user-pci", fix};
  return Ok(fmt::format("QEMU {} has vfio-user-pci", *qemu.version));
}

Diagnosis CheckSlurm(const Seen&) {
  if (!IsOneThere(kSlurmDaemons))
    return {Verdict::kNotHere, "Slurm is not installed", "only for nodes of a Slurm cluster"};
  if (Whole(kGresConf).find("vgpud") != std::string::npos) return Ok(fmt::format("{} has GPUs of vgpud", kGresConf));
  return {Verdict::kWarn, fmt::format("{} has no GPU of vgpud", kGresConf),
          "vgpuctl slurm gres.conf prints the lines (docs/slurm.md)"};
}

struct Check {
  const char* name;
  Diagnosis (*run)(const Seen&);
  bool needs_daemon = false;
};
constexpr Check kChecks[] = {
    {"daemon", &CheckDaemon},
    {"host", &CheckHost},
    {"vfs", &CheckVfs, true},
    {"permissions", &CheckPermissions, true},
    {"priority", &CheckPriority, true},
    {"protections", &CheckProtections, true},
    {"history", &CheckHistory, true},
    {"cdi", &CheckCdi},
    {"libvirt", &CheckLibvirt},
    {"qemu", &CheckQemu},
    {"slurm", &CheckSlurm},
};

constexpr const char* kWords[] = {"ok", "warn", "FAIL", "-"};
const char* WordOf(Verdict verdict) { return kWords[static_cast<size_t>(verdict)]; }

}  // namespace

int CmdDoctor(const CtlArgs& args) {
  const auto ask = [&args](const char* path) { return TryToAsk(args, "GET", path); };
  const Seen seen{args, ask("/v1/vfs"), ask("/v1/gpus"), ask("/v1/stats"), ask("/v1/config")};
  bool failed = false;
  CtlJson list = CtlJson::array();
  for (const Check& check : kChecks) {
    if (check.needs_daemon && !seen.vfs) continue;
    const Diagnosis found = check.run(seen);
    failed |= found.verdict == Verdict::kFail;
    if (args.json)
      list.push_back(
          {{"check", check.name}, {"verdict", WordOf(found.verdict)}, {"what", found.what}, {"fix", found.fix}});
    else
      fmt::print("{:4}  {:11}  {}{}\n", WordOf(found.verdict), check.name, found.what,
                 found.fix.empty() ? "" : fmt::format(" (fix: {})", found.fix));
  }
  if (args.json) (void)PrintData(args.view, CtlJson{{"checks", list}});
  return failed ? kExitDiffers : kExitOk;
}

}  // namespace vgpud::tools
