// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/memory/shared_host.h"

#include <fmt/core.h>

#include <algorithm>

namespace vgpud::driver {

SharedHost::~SharedHost() {
  card_.Bind();
  for (const auto& [address, memory] : shared_) (void)card_.api().MemHostUnregister(memory.data());
}

GpuResult<GpuVa> SharedHost::Share(std::span<std::byte> memory, const MemoryFile& file) {
  if (!card_.shares_memory() || memory.empty())
    return GpuFail(CuStatus::kNotSupported, "this GPU's kernels reach no memory of the host");
  for (const auto& [address, known] : shared_)
    if (known.data() == memory.data()) return GpuVa{address};
  const Api& api = card_.api();
  card_.Bind();
  if (api.DescribeHostMemory != nullptr)
    (void)api.DescribeHostMemory(memory.data(), memory.size(), file.fd, file.offset);
  const auto failed = [&](Status status, const char* call) {
    return GpuFail(static_cast<CuStatus>(status),
                   fmt::format("{} of {} bytes: {}", call, memory.size(), api.Describe(status)));
  };
  if (const Status status = api.MemHostRegister(memory.data(), memory.size(), kHostRegisterMapped); status != kOk)
    return failed(status, "cuMemHostRegister");
  DevicePtr address = 0;
  if (const Status status = api.MemHostGetDevicePointer(&address, memory.data(), 0); status != kOk) {
    (void)api.MemHostUnregister(memory.data());
    return GpuFail(CuStatus::kNotSupported, failed(status, "cuMemHostGetDevicePointer").value().text);
  }
  shared_[address] = memory;
  ranges_.Add(address, memory.size(), Ranges::Kind::kShared);
  return GpuVa{address};
}

void SharedHost::Unshare(std::span<std::byte> memory) {
  const auto it = std::find_if(shared_.begin(), shared_.end(),
                               [&](const auto& shared) { return shared.second.data() == memory.data(); });
  if (it == shared_.end()) return;
  (void)ranges_.Remove(it->first, Ranges::Kind::kShared);
  shared_.erase(it);
  card_.Bind();
  (void)card_.api().MemHostUnregister(memory.data());
}

std::byte* SharedHost::Find(GpuVa address, uint64_t bytes) const {
  auto it = shared_.upper_bound(Raw(address));
  if (it == shared_.begin()) return nullptr;
  --it;
  const uint64_t offset = Raw(address) - it->first;
  const uint64_t size = it->second.size();
  return offset <= size && bytes <= size - offset ? it->second.data() + offset : nullptr;
}

}  // namespace vgpud::driver
