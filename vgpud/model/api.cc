// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/api.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace vgpud::control {

bool IsValidName(std::string_view name) {
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kMaxNameBytes && alnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return alnum(c) || c == '-'; });
}

std::string DefaultRuntimeDir() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const auto dir = variable(kRuntimeDirVariable); !dir.empty()) return dir;
  if (::geteuid() == 0) return kSystemRuntimeDir;
  if (const auto dir = variable("XDG_RUNTIME_DIR"); !dir.empty()) return dir + "/vgpud";
  return "/tmp/vgpud-" + std::to_string(::geteuid());
}

std::string RuntimeDirOfClient() {
  const auto serves = [](const std::string& dir) { return ::access(ControlSocketPath(dir).c_str(), F_OK) == 0; };
  std::string own = DefaultRuntimeDir();
  const char* const named = std::getenv(kRuntimeDirVariable);
  if ((named != nullptr && *named != '\0') || serves(own) || !serves(kSystemRuntimeDir)) return own;
  return kSystemRuntimeDir;
}

std::string ControlSocketPath(const std::string& runtime_dir) { return runtime_dir + "/control.sock"; }

std::string OwnSocketPath(const std::string& control_socket) {
  return control_socket.substr(0, control_socket.rfind('/') + 1) + "own.sock";
}

}  // namespace vgpud::control
