// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/device_ops.h"

#include <algorithm>
#include <cstring>

namespace vgpud::exec {

EntryVerdict DeviceOps::Reset(RingEntry& entry) {
  context_.gpu.SetUsed(false);
  context_.work.Reset(channel_.poisoned() ? channel_.sticky() : CuStatus::kContextIsDestroyed);
  context_.modules.Clear();
  context_.gpu.Renew();
  context_.loader.OnNewContext();
  context_.buffers.ShareAgain();
  context_.runtime.TellPrinted();
  context_.vram.Reset();
  channel_.ClearFault();
  channel_.completions().WakeGuest();
  return channel_.Reply(entry);
}

EntryVerdict DeviceOps::Info(RingEntry& entry) {
  const Gpu::DeviceInfo info = context_.gpu.gpu().Info();
  vgpu_device_info out{};
  info.name.copy(out.name, sizeof out.name - 1);
  out.total_memory = context_.vram.share().quota();
  const size_t known = std::min<size_t>(info.attributes.size(), VGPU_DEVICE_ATTRIBUTES);
  std::copy_n(info.attributes.begin(), known, out.attribute);
  std::memcpy(entry.span.data(), &out, sizeof out);
  return channel_.Reply(entry);
}

}  // namespace vgpud::exec
