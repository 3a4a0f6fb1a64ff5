// SPDX-License-Identifier: Apache-2.0
// vgpuctl create, set, pause, resume, gpus, gpu, set-gpu, apply
#include <fmt/core.h>

#include <iterator>

#include "base/units.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/chosen_vfs.h"
#include "tools/vgpuctl/create_body.h"
#include "tools/vgpuctl/knobs.h"
#include "tools/vgpuctl/owner.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/rows.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

// The knobs of the command line, checked for their form; their range is the daemon's business.
tl::expected<CtlJson, int> Knobs(const std::map<std::string, std::string>& knobs,
                                 const std::vector<std::string>& group_weights = {}) {
  CtlJson body = CtlJson::object();
  for (const auto& knob : control::Knobs()) {
    const auto typed = knobs.find(knob.field);
    if (typed != knobs.end()) {
      const auto value = ParseKnob(knob, typed->second);
      if (!value)
        return tl::unexpected(Complain(kExitUsage, fmt::format("--{} {}", knob.option, value.error().context)));
      body[knob.field] = *value;
    }
    if (!knob.per_group) continue;
    for (const std::string& text : group_weights) {
      const auto value = ParseGroupKnob(knob, text);
      if (!value)
        return tl::unexpected(Complain(kExitUsage, fmt::format("--{} {}", knob.option, value.error().context)));
      body[knob.field][value->group] = value->value;
    }
  }
  return body;
}

std::string Path(const CtlArgs& args, std::string path) {
  path = WithRevision(args, std::move(path));
  if (args.dry_run) path += path.find('?') == std::string::npos ? "?dry_run=1" : "&dry_run=1";
  return path;
}

int PrintChangeAs(const CtlArgs& args, const std::string& name, const Answer& answer) {
  return args.json ? PrintData(args.view, answer.raw) : PrintChange(name, answer.json);
}

int Change(const CtlArgs& args, const char* method, const std::string& path, const CtlJson& body,
           const std::string& name) {
  const auto answer = Ask(args, method, Path(args, path), body);
  return answer ? PrintChangeAs(args, name, *answer) : answer.error();
}

// Several VFs change between the same two turns, all of them or none.
int ChangeVfs(const CtlArgs& args, const char* command, const CtlJson& change) {
  const auto vfs = ChooseVfs(args, command);
  if (!vfs) return vfs.error();
  if (!vfs->several) return Change(args, "PATCH", "/v1/vfs/" + vfs->names.front(), change, vfs->names.front());
  CtlJson body = CtlJson::object();
  std::string all;
  for (const std::string& name : vfs->names) {
    body["vfs"][name] = change;
    all += (all.empty() ? "" : ", ") + name;
  }
  if (!body.empty()) return Change(args, "PATCH", "/v1/settings", body, all);
  if (args.json)
    return PrintData(args.view, CtlJson{{"apiVersion", control::kApiVersion},
                                        {"changes", CtlJson::array()},
                                        {"effects", CtlJson::array()},
                                        {"dry_run", args.dry_run}});
  fmt::print("there is no VF: nothing changes\n");
  return kExitOk;
}

// What can be set of a VF that is there, too.
tl::expected<CtlJson, int> SetBody(const NewVf& vf) {
  auto body = Knobs(vf.knobs);
  if (!body) return body;
  const std::optional<std::string>* const typed[] = {&vf.vram, &vf.host_memory};
  for (size_t i = 0; i < std::size(kMemoryOptions); ++i) {
    if (!*typed[i]) continue;
    const auto bytes = ParseMemory(kMemoryOptions[i], **typed[i]);
    if (!bytes)
      return tl::unexpected(
          Complain(kExitUsage, fmt::format("--{} {}", kMemoryOptions[i].option, bytes.error().context)));
    (*body)[kMemoryOptions[i].field] = *bytes;
  }
  return body;
}

}  // namespace

tl::expected<CtlJson, int> CreateBody(const NewVf& vf) {
  auto body = SetBody(vf);
  if (!body) return body;
  (*body)["name"] = vf.name;
  if (!vf.profile.empty()) (*body)["profile"] = vf.profile;
  if (!vf.tenant.empty()) (*body)["tenant"] = vf.tenant;
  if (vf.transient) (*body)["transient"] = true;
  if (vf.owner) {
    const auto owner = OwnerFields(*vf.owner);
    if (!owner) return tl::unexpected(Complain(kExitUsage, "--owner " + owner.error().context));
    body->update(*owner);
  }
  if (!vf.gpu.empty()) (*body)["gpu"] = vf.gpu;
  if (!vf.placement.empty()) (*body)["placement"] = vf.placement;
  if (vf.numa_node) (*body)["numa_node"] = *vf.numa_node;
  return body;
}

namespace {

// The VF that --if-missing is content with; nothing: there is none, or it is lost, or about to end.
std::optional<Answer> FindLiving(const CtlArgs& args) {
  if (!CanBeInPath(args.name)) return std::nullopt;
  auto vf = TryToAsk(args, "GET", "/v1/vfs/" + args.name);
  const std::string state = vf ? Text(vf->json, "state") : "";
  return vf && state != "lost" && state != "closing" ? std::optional(std::move(*vf)) : std::nullopt;
}

// vgpud makes no VF for a client that has left its queue, but it may have begun just before.
int WhyNotInTime(const CtlArgs& args) {
  if (FindLiving(args))
    return Complain(kExitTimedOut,
                    fmt::format("{0} is being made, but not in time for --timeout: see vgpuctl show {0}", args.name));
  return Complain(kExitTimedOut,
                  fmt::format("{} was not made: no GPU had room for it within --timeout, and it does not "
                              "wait any more (without --timeout it waits for ever)",
                              args.name));
}

}  // namespace

int CmdCreate(const CtlArgs& args) {
  const auto body = CreateBody(args);
  if (!body) return body.error();
  const auto answer = TryToAsk(args, "POST", Path(args, args.queue ? "/v1/vfs?queue=1" : "/v1/vfs"), *body);
  if (!answer && answer.error().code == kExitTimedOut && args.queue) return WhyNotInTime(args);
  if (!answer) {
    const auto there = args.if_missing && answer.error().code == kExitRefused ? FindLiving(args) : std::nullopt;
    if (!there) return Complain(answer.error());
    if (args.json) return PrintData(args.view, there->raw);
    fmt::print("{} is there already: nothing was done\n", args.name);
    return kExitOk;
  }
  if (args.dry_run) return PrintChangeAs(args, args.name, *answer);
  return args.json ? PrintData(args.view, answer->raw) : PrintFields(answer->json);
}

int CmdSet(const CtlArgs& args) {
  const auto body = SetBody(args);
  if (!body) return body.error();
  if (body->empty()) return Complain(kExitUsage, "nothing to set: give a knob, like --weight or --slice, or --vram");
  return ChangeVfs(args, "set", *body);
}

int CmdPause(const CtlArgs& args) { return ChangeVfs(args, "pause", {{"paused", true}}); }
int CmdResume(const CtlArgs& args) { return ChangeVfs(args, "resume", {{"paused", false}}); }

namespace {

// Of the only GPU, where none is named.
std::string GpuPath(const CtlArgs& args) { return args.gpu.empty() ? "/v1/gpu" : "/v1/gpus/" + args.gpu; }

}  // namespace

int CmdGpu(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", GpuPath(args));
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  CtlJson fields = answer->json;
  const CtlJson protections = fields.value("protections", CtlJson::array());
  fields.erase("protections");
  CtlJson rungs = CtlJson::array();
  if (const auto device = fields.find("device"); device != fields.end()) {
    rungs = device->value("rungs", rungs);
    device->erase("rungs");
  }
  (void)PrintFields(fields);
  for (const CtlJson& row : protections)
    fmt::print("{:18} {}\n", Text(row, "name"),
               row.value("in_force", false) ? "in force" : "NOT in force: " + Text(row, "why_not"));
  for (const CtlJson& row : rungs)
    fmt::print("{:18} {}{}\n", "by " + Text(row, "name"), row.value("works", false) ? "" : "NO: ", Text(row, "what"));
  return kExitOk;
}

namespace {

tl::expected<CtlJson, int> GpuBody(const CtlArgs& args) {
  auto body = Knobs(args.knobs, args.group_weights);
  if (!body) return body;
  if (!args.policy.empty()) (*body)["policy"] = args.policy;
  if (!args.idle.empty()) (*body)["idle"] = args.idle;
  return body;
}

}  // namespace

int CmdSetGpu(const CtlArgs& args) {
  const auto body = GpuBody(args);
  if (!body) return body.error();
  if (body->empty()) return Complain(kExitUsage, "nothing to set: give --policy, --idle or a knob, like --base-slice");
  return Change(args, "PATCH", GpuPath(args), *body, "gpu");
}

int CmdApply(const CtlArgs& args) {
  const auto gpu = GpuBody(args);
  if (!gpu) return gpu.error();
  if (!args.file.empty()) {
    if (gpu->empty() && args.vfs.empty()) return ApplyFile(args);
    return Complain(kExitUsage, "give --file, or options and VFs, not both");
  }
  if (args.prune) return Complain(kExitUsage, "--prune goes with --file");
  CtlJson body = CtlJson::object();
  if (!gpu->empty()) (args.gpu.empty() ? body["gpu"] : body["gpus"][args.gpu]) = *gpu;
  for (const std::string& text : args.vfs) {
    const auto input = ParseVfInput(text);
    if (!input) return Complain(kExitUsage, input.error().context);
    CtlJson& vf = body["vfs"][input->name];
    if (!vf.is_null()) return Complain(kExitUsage, fmt::format("{} is given twice", input->name));
    for (const auto& [field, value] : input->fields) vf[field] = value;
  }
  if (body.empty()) return Complain(kExitUsage, "nothing to change: give options of the GPU, or NAME:OPTION=VALUE");
  const auto answer = Ask(args, "PATCH", Path(args, "/v1/settings"), body);
  if (!answer) return answer.error();
  const int printed = PrintChangeAs(args, "gpu", *answer);
  return printed == kExitOk && !answer->json.value("changes", CtlJson::array()).empty() ? ExitOfChanged(args) : printed;
}

}  // namespace vgpud::tools
