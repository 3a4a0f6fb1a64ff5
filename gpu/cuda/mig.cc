// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/mig.h"

#include <fmt/core.h>
#include <strings.h>

#include <cstdlib>
#include <cstring>

namespace vgpud::driver {
namespace {

constexpr char kPrefix[] = "MIG-";

// RFC 4122, section 3, as nvidia-smi writes it.
std::string NameOf(const DeviceUuid& uuid) {
  std::string text = kPrefix;
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

// "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
bool IsCalledMig(const Api& api, Device device) {
  char name[256] = {};
  return api.DeviceGetName(name, sizeof name - 1, device) == kOk && std::strstr(name, " MIG ") != nullptr;
}

}  // namespace

bool IsMigName(const std::string& name) { return name.starts_with(kPrefix); }

void SeeOnlyMig(const std::string& name) { ::setenv("CUDA_VISIBLE_DEVICES", name.c_str(), 1); }

std::string MigNameOf(const Api& api, Device device) {
  DeviceUuid device_uuid{}, card_uuid{};
  if (api.DeviceGetUuid(&device_uuid, device) != kOk) return {};
  const bool told = api.DeviceGetCardUuid != nullptr && api.DeviceGetCardUuid(&card_uuid, device) == kOk;
  const bool whole = told ? std::memcmp(&device_uuid, &card_uuid, sizeof device_uuid) == 0 : !IsCalledMig(api, device);
  return whole ? std::string() : NameOf(device_uuid);
}

bool IsMig(const Api& api, Device device, const std::string& name) {
  DeviceUuid uuid{};
  return api.DeviceGetUuid(&uuid, device) == kOk && ::strcasecmp(NameOf(uuid).c_str(), name.c_str()) == 0;
}

}  // namespace vgpud::driver
