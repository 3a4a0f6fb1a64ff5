// SPDX-License-Identifier: Apache-2.0
// vgpuctl slurm: what Slurm's configuration files have to say of this host.
#include <fmt/core.h>

#include <algorithm>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {
namespace {

constexpr const char* kWholeGpu = "1/1";

// 0 when there is no such profile.
uint64_t VramOf(const CtlJson& profiles, const std::string& name) {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const CtlJson& profile) { return Text(profile, "name") == name; });
  return found == profiles.end() ? 0 : Number(*found, "vram_bytes");
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
  const uint64_t count = whole / each;
  if (count == 0)
    return Complain(kExitRefused,
                    fmt::format("a VF of profile {} takes {} bytes of memory, the GPU has {}", profile, each, whole));
  if (args.json) return PrintRaw(CtlJson{{"name", "gpu"}, {"type", "vgpud"}, {"count", count}}.dump(2) + "\n");
  fmt::print("# {} VFs of profile {}. In slurm.conf: GresTypes=gpu, and for the node Gres=gpu:vgpud:{}\n", count,
             profile, count);
  fmt::print("AutoDetect=off\nName=gpu Type=vgpud File={}/vf{}\n", args.files_dir,
             count == 1 ? "0" : fmt::format("[0-{}]", count - 1));
  return kExitOk;
}

}  // namespace vgpud::tools
