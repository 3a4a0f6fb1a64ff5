// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/confined_user.h"

#include <fmt/core.h>

#include <charconv>

namespace vgpud::tools {
namespace {

constexpr std::string_view kMark = "# vgpud\n";

std::string LabelOf(const XmlNode& domain, std::string_view model) {
  for (const XmlNode& child : domain.children)
    if (child.IsElement("seclabel") && child.Get("model") == model)
      if (const XmlNode* label = child.Child("label")) return label->Inside();
  return {};
}

}  // namespace

std::optional<uid_t> QemuUser(const XmlNode& domain) {
  const std::string label = LabelOf(domain, "dac");  // "+64055:+64055"
  if (!label.starts_with('+')) return std::nullopt;
  uid_t uid = 0;
  const char* end = label.data() + label.size();
  const auto done = std::from_chars(label.data() + 1, end, uid);
  if (done.ec != std::errc() || done.ptr == end || *done.ptr != ':') return std::nullopt;
  return uid;
}

std::string AppArmorProfile(const XmlNode& domain) {
  const std::string label = LabelOf(domain, "apparmor");
  // It becomes part of a path.
  if (!label.starts_with("libvirt-") || label.find_first_not_of("libvrt-0123456789abcdef") != std::string::npos)
    return {};
  return label;
}

Result<std::string> WithRules(const std::string& profile_text, const Note& note, const Places& places) {
  std::string out;
  for (size_t at = 0; at < profile_text.size();) {
    const size_t end = std::min(profile_text.find('\n', at), profile_text.size() - 1) + 1;
    const std::string_view line = std::string_view(profile_text).substr(at, end - at);
    if (!line.ends_with(kMark)) out += line;
    at = end;
  }
  const size_t brace = out.rfind('}');
  if (brace == std::string::npos || out.find("profile ") == std::string::npos)
    return Fail(std::errc::invalid_argument, "it is no AppArmor profile as libvirt writes them");
  std::string rules;
  for (const Hostdev& each : note.hostdevs)
    if (each.managed) rules += fmt::format("  \"{}\" rw, {}", places.Socket(each.vf), kMark);
  if (!rules.empty()) rules += fmt::format("  \"{}\" rk, {}", places.HeldState(), kMark);
  out.insert(brace, rules);
  return out;
}

}  // namespace vgpud::tools
