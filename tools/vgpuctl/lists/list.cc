// SPDX-License-Identifier: Apache-2.0
// vgpuctl list, gpus, profiles
#include <fmt/core.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/rows.h"

namespace vgpud::tools {
namespace {

constexpr Column kOfVfs[] = {
    {"NAME", "name"},
    {"GPU", "gpu", "soft0"},
    {"STATE", "state"},
    {"UTIL", "utilization"},
    {"WEIGHT", "weight"},
    {"SLICE", "slice_us"},
    {"SHARE", "share"},
    {"PRIORITY", "priority", "1"},
    {"GROUP", "group", "-"},
    {"GUARANTEE", "guarantee", "0%"},
    {"LIMIT", "limit", "100%"},
    {"VRAM", "vram_bytes"},
    {"USED", "vram_used_bytes"},
    {"EXECUTORS", "executors"},
    {"VM", "client_connected"},
    {"DOMAIN", "domain", "-"},
    {"TENANT", "tenant", "-"},
    {"PROFILE", "profile", nullptr, true},
    {"TRANSIENT", "transient", nullptr, true},
    {"HOST-MEMORY", "host_memory_bytes", nullptr, true},
    {"HOST-USED", "host_memory_used_bytes", nullptr, true},
    {"BURST", "burst_us", nullptr, true},
    {"WAKE-FIRST", "wake_first", nullptr, true},
    {"REVISION", "revision", nullptr, true},
    {"UUID", "uuid", nullptr, true},
};
constexpr Column kOfGpus[] = {
    {"NAME", "name"},
    {"KIND", "kind"},
    {"CAPABILITY", "compute_capability"},
    {"POLICY", "policy"},
    {"VFS", "vfs"},
    {"VRAM", "vram_bytes"},
    {"PROMISED", "vram_promised_bytes"},
    {"NODE", "numa_node"},
    {"IDLE", "idle", nullptr, true},
    {"BASE-SLICE", "base_slice_us", nullptr, true},
    {"MAX-WAIT", "max_wait_us", nullptr, true},
    {"REVISION", "revision", nullptr, true},
};
constexpr Column kOfProfiles[] = {
    {"NAME", "name"}, {"VRAM", "vram_bytes"}, {"HOST-MEMORY", "host_memory_bytes"}, {"SETTINGS", "settings"}};

std::string SettingsOf(const CtlJson& profile) {
  std::string settings;
  for (const auto& item : profile.items())
    if (const control::KnobInfo* const knob = control::FindKnob(item.key()))
      settings += fmt::format("{}{}={}", settings.empty() ? "" : " ", knob->option, Readable(item.key(), item.value()));
  return settings;
}

}  // namespace

int CmdList(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/vfs");
  if (!answer) return answer.error();
  Rows rows("vfs", kOfVfs);
  std::string lost;
  for (const CtlJson& vf : answer->json.value("vfs", CtlJson::array())) {
    rows.Add(vf);
    if (Text(vf, "state") == "lost") lost += Text(vf, "reason") + "\n";
  }
  return PrintRows(args.view, std::move(rows), answer->json, lost);
}

int CmdGpus(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/gpus");
  if (!answer) return answer.error();
  Rows rows("gpus", kOfGpus);
  for (const CtlJson& gpu : answer->json.value("gpus", CtlJson::array())) {
    CtlJson shown = gpu;
    if (Number(gpu, "vram_bytes") == 0) shown["vram_bytes"] = "no limit";
    rows.Add(std::move(shown), gpu);
  }
  const uint64_t waiting = Number(answer->json, "waiting");
  return PrintRows(args.view, std::move(rows), answer->json,
                   waiting == 0 ? "" : fmt::format("{} new VFs wait for room\n", waiting));
}

int CmdProfiles(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/profiles" + (args.gpu.empty() ? "" : "?gpu=" + args.gpu));
  if (!answer) return answer.error();
  Rows rows("profiles", kOfProfiles);
  for (const CtlJson& profile : answer->json.value("profiles", CtlJson::array())) {
    CtlJson shown = profile;
    shown["settings"] = SettingsOf(profile);
    rows.Add(std::move(shown), profile);
  }
  return PrintRows(args.view, std::move(rows), answer->json);
}

}  // namespace vgpud::tools
