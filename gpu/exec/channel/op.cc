// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/op.h"

#include <algorithm>

namespace vgpud::exec {

std::unique_ptr<Op> MakeOp(const vgpu_sqe& sqe) {
  auto op = std::make_unique<Op>();
  op->kind = sqe.op;
  op->want_completion = (sqe.flags & VGPU_SQE_WANT_COMPLETION) != 0;
  op->seqno = sqe.seqno;
  std::copy(std::begin(sqe.args), std::end(sqe.args), op->args.begin());
  return op;
}

}  // namespace vgpud::exec
