// SPDX-License-Identifier: Apache-2.0
// vgpuctl export, apply --file, assert
#include <fmt/core.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/owner.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/rows.h"
#include "tools/vgpuctl/state_file.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

// What has to be done so that everything is as a file says.
struct Plan {
  std::vector<std::string> conflicts;  // what cannot be changed while it is there
  std::vector<std::string> destroyed;
  CtlJson settings = CtlJson::object();  // of what is there: PATCH /v1/settings
  CtlJson changes = CtlJson::array();    // that these make, as the daemon says
  std::vector<CtlJson> created;          // POST /v1/vfs
  bool empty() const { return conflicts.empty() && destroyed.empty() && changes.empty() && created.empty(); }
};

// As PATCH /v1/vfs/NAME takes it.
CtlJson PatchOf(const WantedVf& wanted) {
  CtlJson body = wanted.settings;
  if (wanted.vram_bytes) body["vram_bytes"] = *wanted.vram_bytes;
  if (wanted.host_memory_bytes) body["host_memory_bytes"] = *wanted.host_memory_bytes;
  return body;
}

CtlJson Creation(const std::string& name, const WantedVf& wanted) {
  CtlJson body = {{"name", name}};
  if (!wanted.profile.empty()) body["profile"] = wanted.profile;
  if (!wanted.gpu.empty()) body["gpu"] = wanted.gpu;
  if (!wanted.tenant.empty()) body["tenant"] = wanted.tenant;
  if (!wanted.owner.empty()) body.update(*OwnerFields(wanted.owner));
  body.update(PatchOf(wanted));
  return body;
}

void FindConflicts(const CtlJson& vf, const WantedVf& wanted, std::vector<std::string>* conflicts) {
  const std::string name = Text(vf, "name");
  if (Text(vf, "state") == "lost") return conflicts->push_back(Text(vf, "reason"));
  if (vf.value("transient", false))
    conflicts->push_back(fmt::format("{} is transient and should not be: destroy it first", name));
  if (!wanted.gpu.empty() && wanted.gpu != Text(vf, "gpu"))
    conflicts->push_back(
        fmt::format("{} is on gpu {} and should be on {}: destroy it first", name, Text(vf, "gpu"), wanted.gpu));
  if (!wanted.tenant.empty() && wanted.tenant != Text(vf, "tenant"))
    conflicts->push_back(fmt::format("{} is of tenant {} and should be of {}: destroy it first", name,
                                     Text(vf, "tenant").empty() ? "(none)" : Text(vf, "tenant"), wanted.tenant));
  if (!wanted.owner.empty() && wanted.owner != OwnerText(vf))
    conflicts->push_back(fmt::format("{} is owned by {} and should be by {}: destroy it first", name,
                                     OwnerText(vf).empty() ? "nobody" : OwnerText(vf), wanted.owner));
}

tl::expected<Plan, int> MakePlan(const CtlArgs& args) {
  const auto wanted = ReadStateFile(args.file);
  if (!wanted) return tl::unexpected(Complain(kExitUsage, wanted.error().context));
  const auto listed = Ask(args, "GET", "/v1/vfs");
  if (!listed) return tl::unexpected(listed.error());
  Plan plan;
  std::map<std::string, WantedVf> missing = wanted->vfs;
  for (const CtlJson& vf : listed->json.value("vfs", CtlJson::array())) {
    const std::string name = Text(vf, "name");
    const auto it = wanted->vfs.find(name);
    if (it == wanted->vfs.end()) {
      if (args.prune && !vf.value("transient", false)) plan.destroyed.push_back(name);
      continue;
    }
    missing.erase(name);
    FindConflicts(vf, it->second, &plan.conflicts);
    if (const CtlJson patch = PatchOf(it->second); !patch.empty()) plan.settings["vfs"][name] = patch;
  }
  for (const auto& [name, vf] : missing) plan.created.push_back(Creation(name, vf));
  if (!wanted->gpu.empty()) plan.settings["gpu"] = wanted->gpu;
  for (const auto& [name, gpu] : wanted->gpus)
    if (!gpu.empty()) plan.settings["gpus"][name] = gpu;
  if (plan.settings.empty() || !plan.conflicts.empty()) return plan;
  const auto weighed = Ask(args, "PATCH", "/v1/settings?dry_run=1", plan.settings);
  if (!weighed) return tl::unexpected(weighed.error());
  plan.changes = weighed->json.value("changes", CtlJson::array());
  return plan;
}

// How a VF is described that is there and should not be, and one that is not there and should be.
struct Words {
  const char* too_many;
  const char* missing;
};
constexpr Words kOfAssert{"should not be there", "is missing"};
constexpr Words kOfDryRun{"would be destroyed", "would be created"};

CtlJson ToJson(const Plan& plan) {
  CtlJson created = CtlJson::array();
  for (const CtlJson& vf : plan.created) created.push_back(Text(vf, "name"));
  return {{"apiVersion", control::kApiVersion},
          {"conflicts", plan.conflicts},
          {"destroyed", plan.destroyed},
          {"changes", plan.changes},
          {"created", created}};
}

int PrintDifferences(const CtlArgs& args, const Plan& plan, const Words& words) {
  if (args.json) return PrintData(args.view, ToJson(plan));
  for (const std::string& conflict : plan.conflicts) fmt::print("{}\n", conflict);
  for (const std::string& name : plan.destroyed) fmt::print("{} {}\n", name, words.too_many);
  for (const CtlJson& change : plan.changes) {
    const std::string field = Text(change, "field"), vf = Text(change, "vf"), gpu = Text(change, "gpu");
    fmt::print("{} {} is {} and should be {}\n",
               !vf.empty()   ? vf
               : gpu.empty() ? "gpu"
                             : gpu,
               field, ReadableChange(field, change.value("old", CtlJson())),
               ReadableChange(field, change.value("new", CtlJson())));
  }
  for (const CtlJson& vf : plan.created) fmt::print("{} {}\n", Text(vf, "name"), words.missing);
  return kExitOk;
}

// In an order in which each step finds what it needs: room first, then the policy, then VFs that count on both.
tl::expected<void, int> Carry(const CtlArgs& args, const Plan& plan) {
  for (const std::string& name : plan.destroyed) {
    const auto done = Ask(args, "DELETE", "/v1/vfs/" + name);
    if (!done) return tl::unexpected(done.error());
    if (!args.json) fmt::print("{} destroyed\n", name);
  }
  if (!plan.changes.empty()) {
    const auto done = Ask(args, "PATCH", "/v1/settings", plan.settings);
    if (!done) return tl::unexpected(done.error());
    if (!args.json) (void)PrintChange("gpu", done->json);
  }
  for (const CtlJson& vf : plan.created) {
    const auto done = Ask(args, "POST", "/v1/vfs", vf);
    if (!done) return tl::unexpected(done.error());
    if (!args.json) fmt::print("{} created\n", Text(vf, "name"));
  }
  return {};
}

}  // namespace

int CmdExport(const CtlArgs& args) {
  const auto gpus = Ask(args, "GET", "/v1/gpus");
  if (!gpus) return gpus.error();
  const auto vfs = Ask(args, "GET", "/v1/vfs");
  if (!vfs) return vfs.error();
  return PrintRaw(StateTextOfAll(gpus->json.value("gpus", CtlJson::array()), vfs->json.value("vfs", CtlJson::array())));
}

int CmdAssert(const CtlArgs& args) {
  const auto plan = MakePlan(args);
  if (!plan) return plan.error();
  if (plan->empty() && !args.json) return kExitOk;
  const int printed = PrintDifferences(args, *plan, kOfAssert);
  return printed == kExitOk && !plan->empty() ? kExitDiffers : printed;
}

int ApplyFile(const CtlArgs& args) {
  const auto plan = MakePlan(args);
  if (!plan) return plan.error();
  if (plan->empty()) return args.json ? PrintData(args.view, ToJson(*plan)) : kExitOk;
  if (!plan->conflicts.empty()) {
    for (const std::string& conflict : plan->conflicts) (void)Complain(kExitRefused, conflict);
    return kExitRefused;
  }
  if (args.dry_run) {
    if (const int printed = PrintDifferences(args, *plan, kOfDryRun); printed != kExitOk) return printed;
    // Whether there is room for new VFs is known when nothing else changes before.
    for (const CtlJson& vf : plan->created) {
      if (!plan->changes.empty() || !plan->destroyed.empty()) break;
      if (const auto weighed = Ask(args, "POST", "/v1/vfs?dry_run=1", vf); !weighed) return weighed.error();
    }
    return ExitOfChanged(args);
  }
  const auto done = Carry(args, *plan);
  if (!done) return done.error();
  if (args.json) (void)PrintData(args.view, ToJson(*plan));
  return ExitOfChanged(args);
}

}  // namespace vgpud::tools
