// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/vfs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "integrations/kubernetes/ask.h"
#include "vgpud/model/api.h"

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::ordered_json;
std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::optional<int> Node(const Json& object) {
  const auto it = object.find("numa_node");
  return it != object.end() && it->is_number_integer() ? std::optional(it->get<int>()) : std::nullopt;
}

Json ListIn(const Json& answer, const char* key) {
  const auto it = answer.find(key);
  return it != answer.end() && it->is_array() ? *it : Json::array();
}

bool InUse(const Json& vf) {
  const auto executors = vf.find("executors");
  const auto client = vf.find("client_connected");
  return (executors != vf.end() && executors->is_number() && executors->get<double>() > 0) ||
         (client != vf.end() && client->is_boolean() && client->get<bool>());
}

}  // namespace

struct Vfs::Seen {
  std::map<std::string, Json> vfs;                 // by name
  std::map<std::string, std::optional<int>> gpus;  // NUMA node by name
};

Vfs::Vfs(const std::string& runtime_dir) : socket_(control::ControlSocketPath(runtime_dir)) {}

Result<std::string> Vfs::Ask(const std::string& method, const std::string& path, const std::string& body) {
  return AskVgpud(socket_, method, path, body);
}

Result<Vfs::Seen> Vfs::Look() {
  std::string all = TRY(Ask("GET", "/v1/vfs", ""));
  const Json list = Json::parse(all, nullptr, false);
  const Json topo = Json::parse(TRY(Ask("GET", "/v1/topo", "")), nullptr, false);
  if (!list.is_object() || !topo.is_object()) return Fail(std::errc::protocol_error, "vgpud answered without JSON");
  Seen seen;
  for (const Json& vf : ListIn(list, "vfs")) seen.vfs[Text(vf, "name")] = vf;
  for (const Json& gpu : ListIn(topo, "gpus")) seen.gpus[Text(gpu, "name")] = Node(gpu);
  all_ = std::move(all);
  return seen;
}

Result<void> Vfs::Make(const std::string& vf, const std::string& profile, const VfSettings& settings,
                       const std::string& tenant) {
  Json body{{"name", vf}, {"profile", profile}};
  if (settings.weight) body["weight"] = *settings.weight;
  if (settings.slice_us) body["slice_us"] = *settings.slice_us;
  if (settings.vram_bytes) body["vram_bytes"] = *settings.vram_bytes;
  if (!tenant.empty()) body["tenant"] = tenant;
  TRY(Ask("POST", "/v1/vfs", body.dump()));
  LOG(kInfo, "vf={} made with profile {}", vf, profile);
  return {};
}

Result<void> Vfs::End(const std::string& vf) {
  const Seen seen = TRY(Look());
  const auto found = seen.vfs.find(vf);
  if (found == seen.vfs.end()) return {};
  // By UUID: one that was made meanwhile by this name is another one.
  TRY(Ask("DELETE", fmt::format("/v1/vfs/{}?uuid={}", vf, Text(found->second, "uuid")), ""));
  LOG(kInfo, "vf={} ended", vf);
  return {};
}

Result<bool> Vfs::IsThere(const std::string& vf) { return TRY(Look()).vfs.contains(vf); }

Result<OfferedVf> Vfs::Find(const std::string& vf) { return Describe(vf, TRY(Look())); }

Result<void> GiveSockets(const OfferedVf& vf, std::optional<int> user) {
  if (!user) return {};
  for (const std::string& socket : {vf.channel_socket, vf.vfio_user_socket})
    if (::chmod(socket.c_str(), 0600) != 0 ||
        ::lchown(socket.c_str(), static_cast<uid_t>(*user), static_cast<gid_t>(-1)) != 0)
      return FailErrno(fmt::format("{} can't be given to user {}", socket, *user));
  return {};
}

OfferedVf Vfs::Describe(const std::string& name, const Seen& seen) {
  OfferedVf offered{.name = name,
                    .channel_socket = {},
                    .vfio_user_socket = {},
                    .gpu = {},
                    .numa_node = {},
                    .profile = {},
                    .problem = {}};
  const auto found = seen.vfs.find(name);
  if (found == seen.vfs.end()) {
    offered.problem = "it is not there";
    return offered;
  }
  const Json& vf = found->second;
  offered.channel_socket = Text(vf, "channel_socket");
  offered.vfio_user_socket = Text(vf, "vfio_user_socket");
  offered.gpu = Text(vf, "gpu");
  const auto gpu = seen.gpus.find(offered.gpu);
  if (gpu != seen.gpus.end())
    offered.numa_node = gpu->second;
  else if (offered.gpu.empty() && seen.gpus.size() == 1)
    offered.numa_node = seen.gpus.begin()->second;
  if (Text(vf, "state") != "ready")
    offered.problem = fmt::format("it is {}: {}", Text(vf, "state"), Text(vf, "reason"));
  else if (offered.channel_socket.empty() || offered.vfio_user_socket.empty())
    offered.problem = "it has no socket";
  offered.profile = Text(vf, "profile");
  return offered;
}

void Vfs::EndOthers(const Config& config, const Held& held, const Seen& seen) {
  std::map<std::string, const Resource*> wanted;
  for (const Resource& resource : config.resources)
    for (int number = 0; number < resource.count; ++number) wanted[resource.VfName(number)] = &resource;
  for (const auto& [name, vf] : seen.vfs) {
    if (name.rfind(kVfPrefix, 0) != 0 || held.contains(name) || InUse(vf)) continue;
    const auto found = wanted.find(name);
    if (found != wanted.end() && found->second->profile == Text(vf, "profile") &&
        found->second->tenant == Text(vf, "tenant"))
      continue;
    // By UUID: one that was made meanwhile by this name is another one.
    const auto ended = Ask("DELETE", fmt::format("/v1/vfs/{}?uuid={}", name, Text(vf, "uuid")), "");
    if (ended)
      LOG(kInfo, "vf={} ended: the configuration does not have it so any more", name);
    else
      LOG(kWarning, "vf={} could not be ended: {}", name, ended.error().context);
  }
}

void Vfs::Report(const OfferedVf& vf) {
  std::string& known = problems_[vf.name];
  if (known == vf.problem) return;
  known = vf.problem;
  if (known.empty())
    LOG(kInfo, "vf={} can be used", vf.name);
  else
    LOG(kWarning, "vf={} can't be used: {}", vf.name, known);
}

std::map<std::string, std::string> Vfs::MakeMissing(const Config& config, const Held& held, const Seen& seen) {
  std::map<std::string, std::string> failed;
  for (const Resource& resource : config.resources) {
    for (int number = 0; number < resource.count; ++number) {
      const std::string name = resource.VfName(number);
      if (seen.vfs.contains(name)) continue;
      const auto holder = held.find(name);
      const auto made = holder == held.end()
                            ? Make(name, resource.profile,
                                   {.weight = resource.weight, .slice_us = {}, .vram_bytes = {}}, resource.tenant)
                            : Make(name, holder->second.profile, holder->second.settings, resource.tenant);
      if (made) continue;
      failed[name] = made.error().context;
      break;  // the next one would not fit either
    }
  }
  return failed;
}

Offer Vfs::Reconcile(const Config& config, const Held& held) {
  auto seen = Look();
  std::map<std::string, std::string> failed;
  if (seen) {
    EndOthers(config, held, *seen);
    seen = Look();
  }
  if (seen) {
    failed = MakeMissing(config, held, *seen);
    seen = Look();
  }
  Offer offer;
  for (const Resource& resource : config.resources) {
    for (int number = 0; number < resource.count; ++number) {
      const std::string name = resource.VfName(number);
      OfferedVf vf = seen ? Describe(name, *seen)
                          : OfferedVf{.name = name,
                                      .channel_socket = {},
                                      .vfio_user_socket = {},
                                      .gpu = {},
                                      .numa_node = {},
                                      .profile = {},
                                      .problem = seen.error().context};
      if (vf.problem.empty() && vf.profile != resource.profile)
        vf.problem = fmt::format("programs use it with its former profile {}", vf.profile);
      if (const auto why = failed.find(name); why != failed.end()) vf.problem = why->second;
      Report(vf);
      offer[resource.name].push_back(std::move(vf));
    }
  }
  return offer;
}

Result<void> Vfs::Reset(const std::string& vf) {
  TRY(Ask("POST", fmt::format("/v1/vfs/{}/reset", vf), ""));
  return {};
}

}  // namespace vgpud::kubernetes
