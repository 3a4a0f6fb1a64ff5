// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/record_text.h"

#include <fmt/core.h>
#include <pwd.h>

#include <charconv>
#include <ctime>

#include "tools/vgpuctl/print.h"

namespace vgpud::tools {
namespace {

// In local time.
std::string TimeText(uint64_t unix_ms) {
  const auto seconds = static_cast<time_t>(unix_ms / 1000);
  tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "-";
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

// "user 1000" by name, where this host knows it.
std::string Who(const std::string& by) {
  constexpr std::string_view kUser = "user ";
  uid_t uid = 0;
  if (!by.starts_with(kUser)) return by;
  const auto parsed = std::from_chars(by.data() + kUser.size(), by.data() + by.size(), uid);
  const passwd* const user = parsed.ec == std::errc{} ? ::getpwuid(uid) : nullptr;
  return user != nullptr ? user->pw_name : by;
}

std::string ChangesText(const CtlJson& changes) {
  std::string text;
  for (const CtlJson& change : changes) text += (text.empty() ? "" : ", ") + ChangeText(change);
  return text;
}

}  // namespace

std::string EventText(const CtlJson& event) {
  const std::string vf = Text(event, "vf");
  std::string text = ChangesText(event.value("changes", CtlJson::array()));
  if (const std::string said = Text(event, "text"); !said.empty()) text += (text.empty() ? "" : ": ") + said;
  if (const uint64_t pid = Number(event, "pid"); pid != 0) text += fmt::format(" (pid {})", pid);
  if (const std::string by = Text(event, "by"); !by.empty())
    text += fmt::format("{}by {}", text.empty() ? "" : " ", Who(by));
  std::string line = fmt::format("{}  {:9}  {:12}  {}", TimeText(Number(event, "unix_ms")), Text(event, "kind"),
                                 vf.empty() ? "gpu " + Text(event, "gpu") : vf, text);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string LogLineText(const CtlJson& line) {
  return fmt::format("{}  {}  {}", TimeText(Number(line, "unix_ms")), Number(line, "pid"), Text(line, "text"));
}

}  // namespace vgpud::tools
