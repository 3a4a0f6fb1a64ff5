// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/driver/card_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace vgpud::driver {
namespace {

// As the module names its folders: a domain of four digits, in small letters.
std::string WithDomain(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr size_t kWithoutDomain = 7;  // "65:00.0"
  if (address.size() == kWithoutDomain) return "0000:" + address;
  constexpr size_t kLong = 16;  // "00000000:65:00.0"
  return address.size() == kLong && address.starts_with("0000") ? address.substr(4) : address;
}

std::string ValueOf(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
  return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
}

bool IsNumbered(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

CardFacts ReadCardFacts(const std::string& address, const std::string& folder) {
  CardFacts facts;
  std::ifstream file(fmt::format("{}/{}/information", folder, WithDomain(address)));
  for (std::string line; std::getline(file, line);) {
    const std::string value = ValueOf(line);
    if (line.starts_with("GPU UUID:") && value.starts_with("GPU-")) facts.uuid = value;
    uint32_t minor = 0;
    if (line.starts_with("Device Minor:") &&
        std::from_chars(value.data(), value.data() + value.size(), minor).ec == std::errc{})
      facts.minor = minor;
  }
  return facts;
}

std::vector<std::string> DeviceFilesOf(const std::string& address, bool of_mig, const std::string& devices,
                                       const std::string& folder) {
  const auto minor = ReadCardFacts(address, folder).minor;
  std::vector<std::string> files;
  std::error_code none;
  const auto add = [&](const std::filesystem::path& path) {
    if (std::filesystem::exists(path, none)) files.push_back(path.string());
  };
  for (const char* name : {"nvidiactl", "nvidia-uvm"}) add(std::filesystem::path(devices) / name);
  if (minor) add(std::filesystem::path(devices) / fmt::format("nvidia{}", *minor));
  for (const auto& entry : std::filesystem::directory_iterator(devices, none))
    if (!minor && IsNumbered(entry.path().filename().string())) add(entry.path());
  if (of_mig)
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(devices) / "nvidia-caps", none))
      add(entry.path());
  return files;
}

}  // namespace vgpud::driver
