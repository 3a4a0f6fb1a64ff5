// SPDX-License-Identifier: Apache-2.0
// vgpuctl slurm: what Slurm's configuration files have to say of this host.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/rows.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

constexpr const char* kWholeGpu = "1/1";
constexpr const char* kSoftKind = "soft";  // its VRAM is memory of the host
constexpr const char* kTenant = "slurm";   // of jobs, unless a site gives them another one

// 0 when there is no such profile.
uint64_t VramOf(const CtlJson& profiles, const std::string& name) {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const CtlJson& profile) { return Text(profile, "name") == name; });
  return found == profiles.end() ? 0 : Number(*found, "vram_bytes");
}

// How many VFs with these costs `whose`, the site or a tenant, may have; an older vgpud does not say.
uint64_t MostOf(const CtlJson& whose, const std::map<std::string, uint64_t>& costs) {
  const CtlJson quota = whose.value("quota", CtlJson::object());
  uint64_t most = UINT64_MAX;
  for (const auto& [field, cost] : costs)
    if (quota.contains(field)) most = std::min(most, Number(quota, field.c_str()) / cost);
  return most;
}

// How many VFs of `profile`, which has so much VRAM, the host has memory for and jobs may have.
uint64_t MostAllowed(const CtlArgs& args, const CtlJson& profiles, const std::string& profile, uint64_t vram) {
  const auto tenants = Ask(args, "GET", "/v1/tenants");
  const auto gpus = Ask(args, "GET", "/v1/gpus");
  if (!tenants || !gpus) return UINT64_MAX;
  uint64_t each = control::DefaultHostMemoryBytes(vram);
  for (const CtlJson& row : profiles)
    if (Text(row, "name") == profile && row.contains("host_memory_bytes")) each = Number(row, "host_memory_bytes");
  uint64_t ram = each;
  for (const CtlJson& gpu : gpus->json.value("gpus", CtlJson::array()))
    if (Text(gpu, "kind") == kSoftKind) ram = each + vram;
  const std::map<std::string, uint64_t> costs{
      {"vfs", 1}, {"vram_bytes", vram}, {"host_memory_bytes", each}, {"ram_bytes", ram}};
  uint64_t most = MostOf(tenants->json.value("site", CtlJson::object()), costs);
  for (const CtlJson& tenant : tenants->json.value("tenants", CtlJson::array()))
    if (Text(tenant, "name") == kTenant) most = std::min(most, MostOf(tenant, costs));
  return most;
}

}  // namespace

// gres.conf(5). Slurm counts GPUs by their files; node-start of integrations/slurm makes them.
int CmdSlurm(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/profiles");
  if (!answer) return answer.error();
  const CtlJson profiles = answer->json.value("profiles", CtlJson::array());
  const std::string profile = args.profile.empty() ? kWholeGpu : args.profile;
  const uint64_t whole = VramOf(profiles, kWholeGpu);
  const uint64_t each = VramOf(profiles, profile);
  if (each == 0)
    return Complain(kExitNotFound,
                    fmt::format("there is no profile {} with memory: vgpuctl profiles shows all", profile));
  const uint64_t count = std::min(whole / each, MostAllowed(args, profiles, profile, each));
  if (count == 0)
    return Complain(
        kExitRefused,
        fmt::format(
            "a VF of profile {} takes {} bytes of memory, the GPU has {} (and what jobs may have: vgpuctl tenants)",
            profile, each, whole));
  if (args.json) return PrintData(args.view, CtlJson{{"name", "gpu"}, {"type", "vgpud"}, {"count", count}});
  fmt::print("# {} VFs of profile {}. In slurm.conf: GresTypes=gpu, and for the node Gres=gpu:vgpud:{}\n", count,
             profile, count);
  fmt::print("AutoDetect=off\nName=gpu Type=vgpud File={}/vf{}\n", args.files_dir,
             count == 1 ? "0" : fmt::format("[0-{}]", count - 1));
  return kExitOk;
}

}  // namespace vgpud::tools
