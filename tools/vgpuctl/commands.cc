#include "tools/vgpuctl/commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <tl/expected.hpp>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/table.h"
#include "tools/vgpuctl/units.h"

namespace vgpud {
namespace {

using Json = CtlJson;

int PrintVfs(const Json& vfs) {
  Table table{{"NAME", "STATE", "WEIGHT", "SLICE", "VRAM", "USED", "EXECUTORS", "VM"}};
  for (const Json& vf : vfs)
    table.Row({Text(vf, "name"), Text(vf, "state"), fmt::format("{}", Number(vf, "weight")),
               FormatMicroseconds(Number(vf, "slice_us")), FormatBytes(Number(vf, "vram_bytes")),
               FormatBytes(Number(vf, "vram_used_bytes")), fmt::format("{}", Number(vf, "executors")),
               vf.value("client_connected", false) ? "yes" : "no"});
  return PrintRaw(table.Text());
}

int PrintVf(const Json& vf) {
  for (const auto& item : vf.items()) {
    if (item.key() == "apiVersion") continue;
    const bool text = item.value().is_string();
    fmt::print("{:17} {}\n", item.key(), text ? item.value().get<std::string>() : item.value().dump());
  }
  return kExitOk;
}

// The weight and slice of the command line, checked for their form; their range is the daemon's business.
tl::expected<Json, int> Knobs(const CtlArgs& args) {
  Json body = Json::object();
  if (args.weight) body["weight"] = *args.weight;
  if (args.slice && *args.slice == "auto") {
    body["slice_us"] = nullptr;
  } else if (args.slice) {
    const auto us = ParseMicroseconds(*args.slice);
    if (!us) return tl::unexpected(Complain(kExitUsage, "--slice " + us.error().context));
    body["slice_us"] = *us;
  }
  return body;
}

std::string Quantity(const std::string& field, uint64_t value) {
  return field == "slice_us" ? FormatMicroseconds(value) : fmt::format("{}", value);
}

}  // namespace

int CmdCreate(const CtlArgs& args) {
  auto body = Knobs(args);
  if (!body) return body.error();
  (*body)["name"] = args.name;
  if (args.vram) {
    const auto bytes = ParseBytes(*args.vram);
    if (!bytes) return Complain(kExitUsage, "--vram " + bytes.error().context);
    (*body)["vram_bytes"] = *bytes;
  }
  const auto answer = Ask(args, "POST", "/v1/vfs", *body);
  if (!answer) return answer.error();
  return args.json ? PrintRaw(answer->raw) : PrintVf(answer->json);
}

int CmdDestroy(const CtlArgs& args) {
  const auto answer = Ask(args, "DELETE", "/v1/vfs/" + args.name);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  fmt::print("{} destroyed\n", args.name);
  return kExitOk;
}

int CmdList(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/vfs");
  if (!answer) return answer.error();
  return args.json ? PrintRaw(answer->raw) : PrintVfs(answer->json.value("vfs", Json::array()));
}

int CmdShow(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/vfs/" + args.name);
  if (!answer) return answer.error();
  return args.json ? PrintRaw(answer->raw) : PrintVf(answer->json);
}

int CmdSet(const CtlArgs& args) {
  const auto body = Knobs(args);
  if (!body) return body.error();
  if (body->empty()) return Complain(kExitUsage, "nothing to set: give --weight or --slice");
  const auto answer = Ask(args, "PATCH", "/v1/vfs/" + args.name, *body);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  for (const Json& change : answer->json.value("changes", Json::array())) {
    const std::string field = Text(change, "field");
    fmt::print("{} {} {} -> {}, effective at round {}\n", args.name, field == "slice_us" ? "slice" : field,
               Quantity(field, Number(change, "old")), Quantity(field, Number(change, "new")),
               Number(answer->json, "round"));
  }
  return kExitOk;
}

int CmdReset(const CtlArgs& args) {
  const auto answer = Ask(args, "POST", "/v1/vfs/" + args.name + "/reset");
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  fmt::print("{} reset, state {}\n", args.name, Text(answer->json, "state"));
  return kExitOk;
}

}  // namespace vgpud
