// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/owner.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <charconv>

namespace vgpud::tools {
namespace {

Result<uint32_t> NumberOf(const std::string& name, const char* kind, const char* database,
                          std::optional<uint32_t> (*find)(const char*)) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc{} && end == name.data() + name.size()) return number;
  if (const auto found = find(name.c_str())) return *found;
  return Fail(std::errc::invalid_argument,
              fmt::format("\"{}\" is not a {} of this host: give a name that `getent {}` lists, or a number", name,
                          kind, database));
}

std::optional<uint32_t> FindUser(const char* name) {
  const passwd* const found = ::getpwnam(name);
  return found != nullptr ? std::optional<uint32_t>(found->pw_uid) : std::nullopt;
}

std::optional<uint32_t> FindGroup(const char* name) {
  const group* const found = ::getgrnam(name);
  return found != nullptr ? std::optional<uint32_t>(found->gr_gid) : std::nullopt;
}

}  // namespace

Result<CtlJson> OwnerFields(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string user = text.substr(0, colon), group = colon == std::string::npos ? "" : text.substr(colon + 1);
  if ((user.empty() && group.empty()) || (colon != std::string::npos && group.empty()))
    return Fail(std::errc::invalid_argument,
                fmt::format("\"{}\" names nobody (write it like alice, :ml or alice:ml)", text));
  CtlJson fields = CtlJson::object();
  if (!user.empty()) fields["owner_uid"] = TRY(NumberOf(user, "user", "passwd", &FindUser));
  if (!group.empty()) fields["owner_gid"] = TRY(NumberOf(group, "group", "group", &FindGroup));
  return fields;
}

std::string OwnerText(const CtlJson& vf) {
  std::string text = vf.contains("owner_uid") ? fmt::format("{}", Number(vf, "owner_uid")) : "";
  if (vf.contains("owner_gid")) text += fmt::format(":{}", Number(vf, "owner_gid"));
  return text;
}

}  // namespace vgpud::tools
