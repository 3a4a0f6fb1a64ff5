// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubevirt/domain.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace vgpud::kubevirt {
namespace {

using Json = nlohmann::json;

Result<int> CountIn(const std::string& vmi) {
  const Json json = Json::parse(vmi, nullptr, false);
  if (!json.is_object()) return Fail(std::errc::invalid_argument, "--vmi: this is no VirtualMachineInstance in JSON");
  Json value = json;
  for (const char* const key : {"metadata", "annotations", kVfsAnnotation}) {
    if (!value.is_object() || !value.contains(key)) return 1;
    value = Json(value[key]);
  }
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMostVfs)
    return Fail(std::errc::invalid_argument,
                fmt::format("the annotation {} is \"{}\": a number of 1 to {}", kVfsAnnotation, text, kMostVfs));
  return count;
}

}  // namespace

Result<std::string> WithVfs(const std::string& domain, const std::string& vmi) {
  const int count = TRY(CountIn(vmi));
  tools::XmlDocument document = TRY(tools::ParseXml(domain, "--domain"));
  const tools::Places places{kRuntimeDir};
  for (int number = 0; number < count; ++number) {
    tools::Hostdev hostdev;
    hostdev.vf = fmt::format("vm{}", number);
    hostdev.managed = false;  // the device plugin has seen to its socket
    TRY(tools::Attach(document.root, hostdev, places));
  }
  return tools::WriteXml(document);
}

}  // namespace vgpud::kubevirt
