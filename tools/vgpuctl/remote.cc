// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/remote.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {
namespace {

constexpr std::string_view kOption = "--host";
constexpr size_t kMostHostBytes = 255;

// [USER@]NAME or an address; nothing that ssh takes for an option.
bool IsHost(std::string_view host) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:%";
  return !host.empty() && host.size() <= kMostHostBytes && host.front() != '-' &&
         host.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::string Quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::vector<std::string> RemoteCommand(const std::string& host, const std::vector<std::string>& arguments,
                                       std::chrono::milliseconds timeout) {
  if (!IsHost(host)) return {};
  const auto seconds = std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(timeout).count());
  std::vector<std::string> words = {"ssh",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    fmt::format("ConnectTimeout={}", seconds),
                                    "-o",
                                    fmt::format("ServerAliveInterval={}", seconds),
                                    "-o",
                                    "ServerAliveCountMax=1",
                                    "--",
                                    host,
                                    "vgpuctl"};
  bool found = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (!found && word == kOption)
      ++i;
    else if (found || word.rfind(std::string(kOption) + "=", 0) != 0)
      words.push_back(Quoted(word));
    found = found || word.rfind(kOption, 0) == 0;
  }
  return words;
}

int RunOnHost(const std::string& host, std::chrono::milliseconds timeout, int argc, char** argv) {
  std::vector<std::string> words = RemoteCommand(host, std::vector<std::string>(argv + 1, argv + argc), timeout);
  if (words.empty()) return Complain(kExitUsage, "--host: a name that ssh knows, like user@gpu-3");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return Complain(kExitFailed, "ssh could not be started: --host needs it (Debian: openssh-client)");
}

}  // namespace vgpud::tools
