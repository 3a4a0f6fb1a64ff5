// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/log.h"
#include "base/units.h"
#include "vgpud/model/api.h"

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostUidBytes = 64;
constexpr size_t kMostNameBytes = 253;
constexpr size_t kMostResults = 32;
constexpr size_t kMostConfigs = 64;
constexpr size_t kShown = 64;
constexpr const char* kParametersVersion = "vgpud.dev/v1";
constexpr const char* kParametersKind = "VfParameters";

bool Within(std::string_view text, std::string_view allowed, size_t most) {
  return !text.empty() && text.size() <= most && text.find_first_not_of(allowed) == std::string_view::npos &&
         std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
         std::isalnum(static_cast<unsigned char>(text.back())) != 0;
}

constexpr std::string_view kNames = "abcdefghijklmnopqrstuvwxyz0123456789-.";
constexpr std::string_view kLabels = "abcdefghijklmnopqrstuvwxyz0123456789-";
constexpr std::string_view kUids = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";

std::string Quoted(const std::string& text) {
  return fmt::format("\"{}\"", EscapeForLog(std::string_view(text).substr(0, kShown)));
}

tl::unexpected<Error> Wrong(std::string what) { return Fail(std::errc::invalid_argument, std::move(what)); }

const Json& Member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto it = object.find(key);
  return it == object.end() ? kNothing : *it;
}

std::string Text(const Json& object, const char* key) {
  const Json& text = Member(object, key);
  return text.is_string() ? text.get<std::string>() : "";
}

// One member of the parameters.
struct Parameter {
  const char* key;
  Result<void> (*take)(const Json& value, VfSettings* settings);
};

Result<void> TakeVersion(const Json& value, VfSettings*) {
  if (value != kParametersVersion) return Wrong(fmt::format("apiVersion: there is only {}", kParametersVersion));
  return {};
}

Result<void> TakeKind(const Json& value, VfSettings*) {
  if (value != kParametersKind) return Wrong(fmt::format("kind: there is only {}", kParametersKind));
  return {};
}

Result<void> TakeWeight(const Json& value, VfSettings* settings) {
  if (!value.is_number_integer() || value < 1 || value > kMostWeight)
    return Wrong(fmt::format("weight: a number of 1 to {}", kMostWeight));
  settings->weight = value.get<int>();
  return {};
}

Result<void> TakeSlice(const Json& value, VfSettings* settings) {
  const auto us = value.is_string() && value.get_ref<const std::string&>().size() <= kShown
                      ? ParseMicroseconds(value.get_ref<const std::string&>())
                      : Wrong("");
  if (!us || *us < kLeastSliceUs || *us > kMostSliceUs)
    return Wrong(fmt::format("slice: a time like \"2ms\", {} to {}", FormatMicroseconds(kLeastSliceUs),
                             FormatMicroseconds(kMostSliceUs)));
  settings->slice_us = static_cast<int>(*us);
  return {};
}

// "512Mi" as Kubernetes writes it, or "512MiB" as vgpud does.
Result<void> TakeVram(const Json& value, VfSettings* settings) {
  std::string text = value.is_string() ? value.get<std::string>() : "";
  if (!text.empty() && text.back() == 'i') text += 'B';
  const auto bytes = text.size() <= kShown ? ParseBytes(text) : Wrong("");
  if (!bytes || *bytes < control::kMinVramBytes || *bytes > control::kMaxVramBytes)
    return Wrong("vram: memory like \"512Mi\", at least 1Mi");
  settings->vram_bytes = *bytes;
  return {};
}

constexpr std::array<Parameter, 5> kParameters = {{{"apiVersion", &TakeVersion},
                                                   {"kind", &TakeKind},
                                                   {"weight", &TakeWeight},
                                                   {"slice", &TakeSlice},
                                                   {"vram", &TakeVram}}};

Result<void> TakeParameters(const Json& parameters, VfSettings* settings) {
  if (!parameters.is_object()) return Wrong("its parameters are no object");
  for (const auto& [key, value] : parameters.items()) {
    const auto row = std::find_if(kParameters.begin(), kParameters.end(),
                                  [&, k = key](const Parameter& each) { return k == each.key; });
    if (row == kParameters.end())
      return Wrong(fmt::format("there is no parameter {}: weight, slice, vram", Quoted(key)));
    TRY(row->take(value, settings));
  }
  return {};
}

// The request without its subrequest: "a/b" is "a".
std::string BaseRequest(const std::string& request) { return request.substr(0, request.find('/')); }

// Whether a configuration is for a request: for all if it names none.
Result<bool> IsFor(const Json& config, const std::string& request) {
  const Json& requests = Member(config, "requests");
  if (requests.is_null()) return true;
  if (!requests.is_array() || requests.size() > kMostResults)
    return Wrong("the requests of a configuration are no list");
  for (const Json& each : requests)
    if (each.is_string() && (each == request || each == BaseRequest(request))) return true;
  return requests.empty();
}

Result<void> Configure(const Json& configs, const std::string& request, AllocatedVf* vf) {
  if (configs.is_null()) return {};
  if (!configs.is_array() || configs.size() > kMostConfigs) return Wrong("its configuration is no list, or too long");
  for (const Json& config : configs) {
    const Json& opaque = Member(config, "opaque");
    if (Text(opaque, "driver") != kDriver || !TRY(IsFor(config, request))) continue;
    const std::string source = Text(config, "source");
    if (source != "FromClass" && source != "FromClaim")
      return Wrong(fmt::format("its configuration has the source {}", Quoted(source)));
    const auto taken =
        TakeParameters(Member(opaque, "parameters"), source == "FromClass" ? &vf->of_class : &vf->of_claim);
    if (!taken) return Wrong(fmt::format("its configuration for {}: {}", kDriver, taken.error().context));
  }
  return {};
}

Result<AllocatedVf> ParseResult(const Json& result, const Json& configs, const std::string& node) {
  const std::string request = Text(result, "request");
  AllocatedVf vf{.request = BaseRequest(request), .device = Text(result, "device"), .of_class = {}, .of_claim = {}};
  if (!Within(vf.request, kLabels, kShown)) return Wrong(fmt::format("the request {} is no name", Quoted(request)));
  if (!Within(vf.device, kLabels, control::kMaxNameBytes))
    return Wrong(fmt::format("the device {} is no name of a VF", Quoted(vf.device)));
  if (const std::string pool = Text(result, "pool"); pool != node)
    return Fail(std::errc::no_such_device,
                fmt::format("{} is of the pool {}, and this is {}", vf.device, Quoted(pool), node));
  if (const Json& admin = Member(result, "adminAccess"); !admin.is_null() && admin != false)
    return Wrong(fmt::format("{} has no access for administrators beside that of its user", vf.device));
  if (!Member(result, "shareID").is_null())
    return Wrong(fmt::format("{} can't be shared by claims: pods can share one claim", vf.device));
  TRY(Configure(configs, request, &vf));
  return vf;
}

}  // namespace

Result<void> CheckClaimId(const ClaimId& id) {
  if (!Within(id.uid, kUids, kMostUidBytes)) return Wrong(fmt::format("{} is no UID of a claim", Quoted(id.uid)));
  if (!Within(id.ns, kNames, kMostNameBytes)) return Wrong(fmt::format("{} is no namespace", Quoted(id.ns)));
  if (!Within(id.name, kNames, kMostNameBytes)) return Wrong(fmt::format("{} is no name of a claim", Quoted(id.name)));
  return {};
}

Result<std::vector<AllocatedVf>> ParseClaim(const std::string& claim, const ClaimId& id, const std::string& node) {
  const Json json = Json::parse(claim, nullptr, false);
  const Json& metadata = Member(json, "metadata");
  if (!metadata.is_object())
    return Fail(std::errc::protocol_error, fmt::format("the API server answered without the claim {}", id.text()));
  if (Text(metadata, "uid") != id.uid)
    return Fail(std::errc::not_connected, fmt::format("{} is another claim now: its UID is {}, not {}", id.text(),
                                                      Quoted(Text(metadata, "uid")), id.uid));
  const Json& devices = Member(Member(Member(json, "status"), "allocation"), "devices");
  const Json& results = Member(devices, "results");
  if (!results.is_null() && (!results.is_array() || results.size() > kMostResults))
    return Wrong("its allocation is no list, or too long");
  std::vector<AllocatedVf> vfs;
  std::set<std::string> seen;
  for (const Json& result : results) {
    if (Text(result, "driver") != kDriver) continue;
    vfs.push_back(TRY(ParseResult(result, Member(devices, "config"), node)));
    if (!seen.insert(vfs.back().device).second) return Wrong(fmt::format("{} is allocated twice", vfs.back().device));
  }
  if (vfs.empty()) return Fail(std::errc::no_such_device, fmt::format("no device of {} is allocated to it", kDriver));
  return vfs;
}

Result<VfSettings> SettingsFor(const AllocatedVf& vf, const Resource& resource, uint64_t most_vram) {
  const auto refuse = [&](std::string why) {
    return Fail(std::errc::operation_not_permitted, fmt::format("{}: {}", vf.device, why));
  };
  VfSettings settings = vf.of_class;
  if (vf.of_claim.weight) {
    if (!resource.max_weight) return refuse(fmt::format("claims for {} may not ask for a weight", resource.name));
    if (*vf.of_claim.weight > *resource.max_weight)
      return refuse(fmt::format("the weight {} is more than {}, the most for a claim for {}", *vf.of_claim.weight,
                                *resource.max_weight, resource.name));
    settings.weight = vf.of_claim.weight;
  }
  if (vf.of_claim.slice_us) {
    if (!resource.max_slice_us) return refuse(fmt::format("claims for {} may not ask for a slice", resource.name));
    if (*vf.of_claim.slice_us > *resource.max_slice_us)
      return refuse(fmt::format("a slice of {} is more than {}, the most for a claim for {}",
                                FormatMicroseconds(*vf.of_claim.slice_us), FormatMicroseconds(*resource.max_slice_us),
                                resource.name));
    settings.slice_us = vf.of_claim.slice_us;
  }
  if (vf.of_claim.vram_bytes) settings.vram_bytes = vf.of_claim.vram_bytes;
  if (settings.vram_bytes && *settings.vram_bytes > most_vram)
    return refuse(fmt::format("{} of memory are more than the {} of its profile {}", FormatBytes(*settings.vram_bytes),
                              FormatBytes(most_vram), resource.profile));
  return settings;
}

}  // namespace vgpud::kubernetes
