// SPDX-License-Identifier: Apache-2.0
#include "vgpud/tenants/users.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "vgpud/model/api.h"
#include "vgpud/model/nearest.h"

namespace vgpud::daemon {
namespace {

constexpr std::string_view kNames[] = {"nothing", "look", "manage"};
constexpr size_t kMostNameBytes = 32;       // useradd(8)
constexpr size_t kPasswdBytes = 64 * 1024;  // of one entry
constexpr uint32_t kNoId = 0xffffffff;

bool IsUserName(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Of a user or group.
std::optional<uint32_t> NumberIn(const std::string& name) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number == kNoId) return std::nullopt;
  return number;
}

Result<uid_t> FindUser(const std::string& name) {
  if (const auto number = NumberIn(name)) return *number;
  std::vector<char> room(kPasswdBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return Fail(
        std::errc::invalid_argument,
        fmt::format("this host knows no user \"{}\": give a name that `getent passwd` lists, or a number", name));
  return found->pw_uid;
}

}  // namespace

Result<gid_t> FindGroup(const std::string& name) {
  if (const auto number = NumberIn(name)) return *number;
  std::vector<char> room(kPasswdBytes);
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return Fail(
        std::errc::invalid_argument,
        fmt::format("this host knows no group \"{}\": give a name that `getent group` lists, or a number", name));
  return found->gr_gid;
}

std::string_view NameOf(May may) { return kNames[static_cast<size_t>(may)]; }

Result<May> FindMay(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<May>(i);
  return Fail(std::errc::invalid_argument, fmt::format("\"{}\" is unknown: a user may manage, look, or nothing", name));
}

std::vector<std::string> UserKeys() { return {"may", "tenant"}; }

Result<void> SetInUsers(Users* users, std::string_view setting) {
  const size_t dot = setting.find('.');
  const size_t equals = setting.find('=', dot == std::string_view::npos ? 0 : dot);
  if (dot == std::string_view::npos || equals == std::string_view::npos)
    return Fail(std::errc::invalid_argument,
                fmt::format("\"{}\" is not NAME.KEY=VALUE (write it like alice.may=look)", setting));
  const std::string name(setting.substr(0, dot)), key(setting.substr(dot + 1, equals - dot - 1));
  const std::string_view value = setting.substr(equals + 1);
  if (!IsUserName(name))
    return Fail(std::errc::invalid_argument,
                fmt::format("user \"{}\" is not usable: give a name of 1 to {} letters, digits, _ and -, or a number",
                            name, kMostNameBytes));
  auto found = std::find_if(users->begin(), users->end(), [&](const User& each) { return each.name == name; });
  User changed;
  if (found != users->end()) {
    changed = *found;
  } else {
    changed.uid = TRY(FindUser(name));
    changed.name = name;
  }
  if (key == "may")
    changed.may = TRY(FindMay(value));
  else if (key == "tenant" && !control::IsValidName(value))
    return Fail(std::errc::invalid_argument, fmt::format("user {}: \"{}\" is no name of a tenant", name, value));
  else if (key == "tenant")
    changed.tenant = value;
  else
    return Fail(std::errc::invalid_argument,
                fmt::format("user {} has no key \"{}\": {}", name, key, control::DidYouMean(key, UserKeys())));
  if (found != users->end())
    *found = std::move(changed);
  else
    users->push_back(std::move(changed));
  return {};
}

Result<void> CheckAccess(const Access& access, const std::vector<std::string>& tenants) {
  std::set<uid_t> seen;
  for (const User& user : access.users) {
    if (!user.may)
      return Fail(std::errc::invalid_argument,
                  fmt::format("user {}: say what he may: may = \"manage\", \"look\" or \"nothing\"", user.name));
    if (!seen.insert(user.uid).second)
      return Fail(
          std::errc::invalid_argument,
          fmt::format("user {} has the number {}, as another one that is named: name each once", user.name, user.uid));
    if (!user.tenant.empty() && std::find(tenants.begin(), tenants.end(), user.tenant) == tenants.end())
      return Fail(
          std::errc::invalid_argument,
          fmt::format("user {}: there is no tenant \"{}\": {}", user.name, user.tenant,
                      tenants.empty() ? "the configuration has none" : control::DidYouMean(user.tenant, tenants)));
  }
  return {};
}

Rights RightsOf(const Access& access, uid_t client, uid_t own) {
  if (client == 0 || client == own) return {};
  for (const User& user : access.users)
    if (user.uid == client) return {user.may.value_or(May::kNothing), user.tenant, user.name};
  return {access.others, {}, fmt::format("{}", client)};
}

}  // namespace vgpud::daemon
