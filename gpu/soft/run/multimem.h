// SPDX-License-Identifier: Apache-2.0
// Memory that several GPUs have in common (PTX ISA, "multimem"). No soft GPU has any: the device's attribute
// CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0, and no address is one of such memory.
#pragma once

#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

// Operand 0, imm: a 64-bit address. Every access is one of memory that is not there: a fault of the first lane.
const Inst* OpMultimem(Warp& warp, const Inst* inst);

}  // namespace vgpud::soft
