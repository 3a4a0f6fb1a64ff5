// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/prepared_claims.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr const char* kSuffix = ".claim";

Json Describe(const PreparedVf& vf) {
  Json json{
      {"request", vf.request}, {"name", vf.name}, {"profile", vf.held.profile}, {"channel_socket", vf.channel_socket}};
  if (vf.held.settings.weight) json["weight"] = *vf.held.settings.weight;
  if (vf.held.settings.slice_us) json["slice_us"] = *vf.held.settings.slice_us;
  if (vf.held.settings.vram_bytes) json["vram_bytes"] = *vf.held.settings.vram_bytes;
  return json;
}

template <class T>
std::optional<T> Optional(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it == json.end() ? std::nullopt : std::optional(it->get<T>());
}

}  // namespace

std::string ToText(const PreparedClaim& claim) {
  Json vfs = Json::array();
  for (const PreparedVf& vf : claim.vfs) vfs.push_back(Describe(vf));
  return Json{{"version", kVersion},   {"uid", claim.id.uid}, {"namespace", claim.id.ns},
              {"name", claim.id.name}, {"made", claim.made},  {"vfs", vfs}}
             .dump() +
         "\n";
}

Result<PreparedClaim> ParsePreparedClaim(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return Fail(std::errc::invalid_argument, "it is of another version");
    PreparedClaim claim{.id = {.uid = json.at("uid"), .ns = json.at("namespace"), .name = json.at("name")},
                        .vfs = {},
                        .made = json.at("made")};
    TRY(CheckClaimId(claim.id));
    for (const Json& vf : json.at("vfs"))
      claim.vfs.push_back({.request = vf.at("request"),
                           .name = vf.at("name"),
                           .held = {.profile = vf.at("profile"),
                                    .settings = {.weight = Optional<int>(vf, "weight"),
                                                 .slice_us = Optional<int>(vf, "slice_us"),
                                                 .vram_bytes = Optional<uint64_t>(vf, "vram_bytes")}},
                           .channel_socket = vf.at("channel_socket")});
    return claim;
  } catch (const nlohmann::json::exception& error) {
    return Fail(std::errc::invalid_argument, error.what());
  }
}

Result<std::unique_ptr<PreparedClaims>> PreparedClaims::Open(const std::string& directory) {
  auto files = TRY(daemon::StateFiles::Open(directory, "claims", "--plugins-dir"));
  std::unique_ptr<PreparedClaims> claims(new PreparedClaims(std::move(files)));
  for (const auto& file : TRY(claims->files_->ReadAll(kSuffix))) {
    auto claim = file.text ? ParsePreparedClaim(*file.text) : tl::unexpected(file.text.error());
    if (claim && claim->id.uid + kSuffix != file.name)
      claim = Fail(std::errc::invalid_argument, "it is of another claim");
    if (claim)
      claims->claims_[claim->id.uid] = std::move(*claim);
    else
      LOG(kError, "{}/{} is left out: {}", directory, file.name, EscapeForLog(claim.error().context));
  }
  return claims;
}

const PreparedClaim* PreparedClaims::Find(const std::string& uid) const {
  const auto it = claims_.find(uid);
  return it == claims_.end() ? nullptr : &it->second;
}

const PreparedClaim* PreparedClaims::HolderOf(const std::string& vf) const {
  for (const auto& [uid, claim] : claims_)
    for (const PreparedVf& each : claim.vfs)
      if (each.name == vf) return &claim;
  return nullptr;
}

Held PreparedClaims::held() const {
  Held held;
  for (const auto& [uid, claim] : claims_)
    for (const PreparedVf& vf : claim.vfs) held[vf.name] = vf.held;
  return held;
}

Result<void> PreparedClaims::Put(PreparedClaim claim) {
  TRY(files_->Replace(claim.id.uid + kSuffix, ToText(claim)));
  const std::string uid = claim.id.uid;
  claims_[uid] = std::move(claim);
  return {};
}

Result<void> PreparedClaims::Remove(const std::string& uid) {
  TRY(files_->Remove(uid + kSuffix));
  claims_.erase(uid);
  return {};
}

}  // namespace vgpud::kubernetes
