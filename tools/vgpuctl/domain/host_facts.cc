// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/host_facts.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tools/libvirt/confined_user.h"
#include "tools/libvirt/domain.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/run_program.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

constexpr const char* kAppArmorRules = "/etc/apparmor.d/local/abstractions/libvirt-qemu";
constexpr std::chrono::seconds kQemuPatience{10};

std::string Whole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

SocketFacts LookAt(const std::string& socket, uid_t user) {
  struct stat now {};
  if (::stat(socket.c_str(), &now) != 0) return {};
  const bool has_list = ::getxattr(socket.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
  return {true, user == 0 || has_list || (now.st_uid == user && (now.st_mode & 0600) == 0600) ||
                    (now.st_mode & 0006) == 0006};
}

}  // namespace

QemuFacts AskQemu(const std::string& program) {
  if (!IsTrusted(program)) {
    if (::access(program.c_str(), X_OK) != 0) return {"", {}};
    return {};
  }
  const auto version = RunProgram({program, "--version"}, kQemuPatience);
  const std::string words = "QEMU emulator version ";
  if (!version || !version->starts_with(words)) return {"", {}};
  QemuFacts facts;
  facts.version = version->substr(words.size(), version->find_first_not_of("0123456789.", words.size()) - words.size());
  if (const auto devices = RunProgram({program, "-device", "help"}, kQemuPatience))
    facts.has_device = devices->find("\"vfio-user-pci\"") != std::string::npos;
  return facts;
}

HostFacts FindFacts(const CtlArgs& args, const XmlNode& domain) {
  HostFacts facts;
  const Places places = PlacesOf(args);
  const XmlNode* const emulator = domain.At({"devices", "emulator"});
  const QemuFacts qemu = AskQemu(emulator == nullptr ? kDefaultQemu : emulator->Inside());
  facts.qemu_version = qemu.version;
  facts.qemu_has_device = qemu.has_device;
  facts.hook_installed = ::access((args.hooks_dir + "/vgpud").c_str(), X_OK) == 0;
  if (::access(control::ControlSocketPath(places.runtime_dir).c_str(), F_OK) == 0) {
    if (const auto listed = Ask(args, "GET", "/v1/vfs")) {
      facts.vfs.emplace();
      for (const CtlJson& each : listed->json.value("vfs", CtlJson::array())) facts.vfs->insert(Text(each, "name"));
    }
  }
  const struct passwd* user = ::getpwnam(facts.user.c_str());
  const uid_t uid = QemuUser(domain).value_or(user == nullptr ? ::geteuid() : user->pw_uid);
  if (facts.vfs)
    for (const std::string& vf : VfsOf(domain, places))
      if (facts.vfs->contains(vf)) facts.sockets[vf] = LookAt(places.Socket(vf), uid);
  if (Whole("/sys/module/apparmor/parameters/enabled").starts_with('Y'))
    facts.apparmor_allows = Whole(kAppArmorRules).find(places.runtime_dir + "/vf/") != std::string::npos;
  if (args.gpu_node) {
    std::string list = Whole(fmt::format("/sys/devices/system/node/node{}/cpulist", *args.gpu_node));
    while (!list.empty() && list.back() == '\n') list.pop_back();
    if (!list.empty()) facts.gpu_node_cpus = ParseCpus(list);
  }
  return facts;
}

}  // namespace vgpud::tools
