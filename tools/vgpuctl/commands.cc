#include "tools/vgpuctl/commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <tl/expected.hpp>

#include "base/clock.h"
#include "tools/vgpuctl/http_client.h"
#include "tools/vgpuctl/table.h"
#include "tools/vgpuctl/units.h"
#include "vgpud/control_api.h"

namespace vgpud {
namespace {

using Json = nlohmann::ordered_json;

int Complain(int code, const std::string& text) {
  fmt::print(stderr, "vgpuctl: {}\n", text);
  return code;
}

int ExitCodeOf(int http_status) {
  static constexpr struct {
    int status;
    int exit;
  } kCodes[] = {{400, kExitUsage},   {413, kExitUsage},   {404, kExitNotFound},
                {403, kExitRefused}, {409, kExitRefused}, {504, kExitTimedOut}};
  for (const auto& code : kCodes)
    if (code.status == http_status) return code.exit;
  return kExitFailed;
}

struct Answer {
  std::string raw;
  Json json;
};

constexpr std::chrono::milliseconds kLookForDaemonEvery{20};

// One request, which with args.wait_for_daemon also waits until somebody serves the socket.
Result<HttpReply> Request(const CtlArgs& args, const std::string& socket, const char* method, const std::string& path,
                          const std::string& body) {
  const TimePoint end = Now() + args.timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Now());
    auto reply = HttpRequest(socket, method, path, body, std::max(left, std::chrono::milliseconds{1}));
    if (reply || reply.error().code != std::errc::connection_refused || !args.wait_for_daemon ||
        left < kLookForDaemonEvery)
      return reply;
    std::this_thread::sleep_for(kLookForDaemonEvery);
  }
}

// A 2xx answer, or the exit code after saying what went wrong.
tl::expected<Answer, int> Ask(const CtlArgs& args, const char* method, const std::string& path, const Json& body = {}) {
  const std::string runtime_dir = args.runtime_dir.empty() ? control::DefaultRuntimeDir() : args.runtime_dir;
  const auto reply = Request(args, control::ControlSocketPath(runtime_dir), method, path,
                             body.is_null() ? std::string() : body.dump());
  if (!reply) {
    const Error& error = reply.error();
    if (error.code == std::errc::timed_out)
      return tl::unexpected(Complain(kExitTimedOut, error.context + "; it may still do it (longer: --timeout)"));
    if (error.code == std::errc::connection_refused)
      return tl::unexpected(
          Complain(kExitUnreachable,
                   fmt::format("no vgpud reachable{}: {} (start it, or name its directory with --runtime-dir or ${}{})",
                               args.wait_for_daemon ? fmt::format(" within {} ms", args.timeout.count()) : "",
                               error.context, control::kRuntimeDirVariable,
                               args.wait_for_daemon ? "" : "; --timeout SECONDS waits until it is up")));
    return tl::unexpected(Complain(kExitFailed, error.context));
  }
  Answer answer{reply->body, Json::parse(reply->body, nullptr, false)};
  if (answer.json.is_discarded())
    return tl::unexpected(
        Complain(ExitCodeOf(reply->status), fmt::format("vgpud answered {} without JSON", reply->status)));
  if (reply->status >= 300)
    return tl::unexpected(Complain(ExitCodeOf(reply->status),
                                   answer.json.value("error", fmt::format("vgpud answered {}", reply->status))));
  return answer;
}

int PrintRaw(const std::string& raw) {
  std::fwrite(raw.data(), 1, raw.size(), stdout);
  return kExitOk;
}

uint64_t Number(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}
std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

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

int CmdStats(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", args.name.empty() ? "/v1/stats" : "/v1/stats?vf=" + args.name);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  const Json vfs = answer->json.value("vfs", Json::array());
  double received = 0, entitled = 0;
  for (const Json& vf : vfs) {
    received += static_cast<double>(Number(vf, "received_ns"));
    entitled += static_cast<double>(Number(vf, "entitled_ns"));
  }
  const auto share = [](uint64_t part, double whole) {
    return whole > 0 ? fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / whole) : "-";
  };
  Table table{{"NAME", "WEIGHT", "SLICE", "ENTITLED", "RECEIVED", "TIME", "WAITED", "SLICES", "FORCED", "WORST-OVERRUN",
               "DEBT", "KERNELS"}};
  for (const Json& vf : vfs)
    table.Row({Text(vf, "name"), fmt::format("{}", Number(vf, "weight")), FormatMicroseconds(Number(vf, "slice_us")),
               share(Number(vf, "entitled_ns"), entitled), share(Number(vf, "received_ns"), received),
               FormatNanoseconds(Number(vf, "received_ns")), FormatNanoseconds(Number(vf, "waited_ns")),
               fmt::format("{}", Number(vf, "slices")), fmt::format("{}", Number(vf, "forced_preemptions")),
               FormatNanoseconds(Number(vf, "worst_overrun_ns")), FormatNanoseconds(Number(vf, "debt_ns")),
               fmt::format("{}", Number(vf, "kernels"))});
  return PrintRaw(table.Text());
}

}  // namespace vgpud
