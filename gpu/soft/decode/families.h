// SPDX-License-Identifier: Apache-2.0
// Families of instructions that are decoded in one way: a function each, chosen by opcode. Everything else is one row
// of the op table (DecodePlain).
#pragma once

#include <string_view>
#include <vector>

#include "gpu/soft/decode/draft_builder.h"

namespace vgpud::soft {

// Appends to the draft what one instruction does, without its guard. The error names the PTX line.
using FamilyDecoder = GpuResult<void> (*)(DraftBuilder& out, const ptx::Instruction& i);

struct Family {
  std::string_view opcode;
  FamilyDecoder decode;
  bool writes_unseen = false;  // to shared memory, without being followed by the check mode
};
const Family& FamilyOf(std::string_view opcode);

// row.cc
GpuResult<void> DecodePlain(DraftBuilder& out, const ptx::Instruction& i);
// With a row that was found already.
GpuResult<void> DecodeRow(DraftBuilder& out, const ptx::Instruction& i, const PlainRow& plain);
// min and max of two operands or, of f32, of three.
GpuResult<void> DecodeLeastOrMost(DraftBuilder& out, const ptx::Instruction& i);
// setmaxnreg
GpuResult<void> DecodeRegisterCount(DraftBuilder& out, const ptx::Instruction& i);
// control.cc. A branch under a guard is made conditional by whoever decodes the guard.
GpuResult<void> DecodeBranch(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeIndexedBranch(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeCall(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeReturn(DraftBuilder& out, const ptx::Instruction& i);
// dynamic_local.cc
GpuResult<void> DecodeAlloca(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeStackSave(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeStackRestore(DraftBuilder& out, const ptx::Instruction& i);
// memory.cc
GpuResult<void> DecodeMemory(DraftBuilder& out, const ptx::Instruction& i);
// atomic.cc
GpuResult<void> DecodeAtomic(DraftBuilder& out, const ptx::Instruction& i);
// parameters.cc: ld and st of `.param` variables, which have no address
GpuResult<void> DecodeParamAccess(DraftBuilder& out, const ptx::Operand& address, ptx::Type type,
                                  const std::vector<const ptx::Operand*>& values, bool store);
// async.cc
GpuResult<void> DecodeAsyncCopy(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeBarrierObject(DraftBuilder& out, const ptx::Instruction& i);
// cluster.cc
GpuResult<void> DecodeMapAddress(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeRankOfAddress(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeBulkCopy(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeAsyncAccess(DraftBuilder& out, const ptx::Instruction& i);
// multimem.cc
GpuResult<void> DecodeMultimem(DraftBuilder& out, const ptx::Instruction& i);
// An operand [..] as a generic address, whatever its space.
GpuResult<Place> GenericAddress(DraftBuilder& out, const ptx::Operand& o, ptx::Space space);
// tensor.cc
GpuResult<void> DecodeTensorCopy(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeTensorMap(DraftBuilder& out, const ptx::Instruction& i);
// fence, also the one that names a tensor map
GpuResult<void> DecodeFence(DraftBuilder& out, const ptx::Instruction& i);
// convert.cc
GpuResult<void> DecodeConvert(DraftBuilder& out, const ptx::Instruction& i);
// move.cc
GpuResult<void> DecodeMove(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeCvta(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeIsSpaceP(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeCachePolicy(DraftBuilder& out, const ptx::Instruction& i);
// wgmma.cc
GpuResult<void> DecodeWgmma(DraftBuilder& out, const ptx::Instruction& i);
// tcgen05.cc
GpuResult<void> DecodeTensorCore(DraftBuilder& out, const ptx::Instruction& i);
// matrix.cc, texture.cc, video.cc
GpuResult<void> DecodeMatrix(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeTexture(DraftBuilder& out, const ptx::Instruction& i);
GpuResult<void> DecodeVideo(DraftBuilder& out, const ptx::Instruction& i);
bool IsVideo(std::string_view opcode);

}  // namespace vgpud::soft
