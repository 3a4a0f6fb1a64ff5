// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/launch_codec.h"

#include <algorithm>

#include "gpu/soft/run/launch_check.h"

namespace vgpud::soft {

LaunchCodec::LaunchCodec(const Program& program, const DeviceState& device)
    : program_(program), heap_(device.heap), capability_(device.capability) {
  for (size_t n = 0; n < program.functions.size(); ++n) index_[program.functions[n].get()] = n;
}

void LaunchCodec::Put(StateWriter& out, const DeviceLaunch& launch) const {
  out.Put(index_.at(launch.function));
  for (const uint32_t extent : launch.shape.grid) out.Put(extent);
  for (const uint32_t extent : launch.shape.block) out.Put(extent);
  out.Put(launch.shape.dynamic_shared);
  out.Put(launch.params);
}

DeviceLaunch LaunchCodec::Get(StateReader& in) const {
  const auto function = in.Get<uint64_t>();
  DeviceLaunch launch{};
  for (uint32_t& extent : launch.shape.grid) extent = in.Get<uint32_t>();
  for (uint32_t& extent : launch.shape.block) extent = in.Get<uint32_t>();
  launch.shape.dynamic_shared = in.Get<uint32_t>();
  launch.params = in.Get<uint64_t>();
  if (!in.ok()) return launch;
  if (function >= program_.functions.size() || !program_.functions[function]->is_kernel) {
    in.Bad("kernel of a launch by a kernel", function);
    return launch;
  }
  launch.function = program_.functions[function].get();
  if (auto r = CheckLaunch(capability_, *launch.function, launch.shape); !r)
    in.Fail({CuStatus::kInvalidImage, "saved context: a launch by a kernel: " + r.error().text});
  if (!heap_.Covers(launch.params, std::max(launch.function->info.param_bytes, 1u)))
    in.Bad("place of the parameters of a launch by a kernel", launch.params);
  return launch;
}

}  // namespace vgpud::soft
