// SPDX-License-Identifier: Apache-2.0
// What guests and clients are told of the VF without a channel (struct vgpu_status). All of it is about this VF alone.
#pragma once

#include "base/clock.h"
#include "guest-driver-shim/include/uapi/vgpu_status.h"
#include "vfio/channel/channel_table.h"
#include "vfio/channel/vf_figures.h"

namespace vgpud::vfio {

[[nodiscard]] vgpu_status StatusOf(const VfFigures& figures, const ChannelTable& channels, TimePoint now);

}  // namespace vgpud::vfio
