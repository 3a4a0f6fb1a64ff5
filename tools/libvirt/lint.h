// SPDX-License-Identifier: Apache-2.0
// What keeps a VF in a domain from working, in words, with the way out. Pure: what has to be looked up on this host
// comes as facts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/libvirt/hostdev.h"

namespace vgpud::tools {

// Of a VF's socket, as the user that runs QEMU sees it.
struct SocketFacts {
  bool exists = false;
  bool may_open = false;
};

// What is not known is not judged.
struct HostFacts {
  std::optional<std::string> qemu_version;   // of the domain's <emulator>; empty: it does not run
  std::optional<bool> qemu_has_device;       // vfio-user-pci
  std::optional<bool> hook_installed;        // then it makes VFs and their rights when the domain starts
  std::optional<std::set<std::string>> vfs;  // that vgpud has
  std::map<std::string, SocketFacts> sockets;
  std::optional<bool> apparmor_allows;               // the rule, where AppArmor is on
  std::optional<std::set<unsigned>> gpu_node_cpus;   // processors beside the GPU
  std::map<std::string, std::string> vfs_of_others;  // VF -> another domain that has it
  std::string user = "libvirt-qemu";
};

// The first QEMU that has vfio-user.
inline constexpr const char* kQemuMin = "10.1";
// `version`: as QEMU says it, "7.2.22".
bool IsOldQemu(const std::string& version);

struct Finding {
  const char* id;
  std::string problem;
  std::string fix;
  bool can_fix;  // Fix does it
};

// In a fixed order; empty: nothing is wrong. A domain without any VF has nothing to find.
std::vector<Finding> Lint(const XmlNode& domain, const Places& places, const HostFacts& facts);
// Puts right what can be put right in the XML. What is left: Lint again.
void Fix(XmlNode& domain, const Places& places);

// "0-3,8,^2" of libvirt; nothing: it is not such a list.
std::optional<std::set<unsigned>> ParseCpus(std::string_view text);

}  // namespace vgpud::tools
