// SPDX-License-Identifier: Apache-2.0
// What the GPU thread does for operations, in steps of at most 64 KiB or one budget of warp instructions (OpRow::step).
#pragma once

#include "gpu/exec/channel/op_table.h"

namespace vgpud::exec {

StepResult StepKernel(Gpu& gpu, Op& op, const StepTerms& terms);
// Of copies and fills.
StepResult StepCopy(Gpu& gpu, Op& op, const StepTerms& terms);
StepResult StepWrite(Gpu& gpu, Op& op, const StepTerms& terms);

}  // namespace vgpud::exec
