// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/families.h"

#include <algorithm>
#include <iterator>

namespace vgpud::soft {
namespace {

// By opcode.
constexpr Family kFamilies[] = {
    {"alloca", DecodeAlloca},
    {"atom", DecodeAtomic},
    {"bra", DecodeBranch},
    {"brx", DecodeIndexedBranch},
    {"call", DecodeCall},
    {"cp", DecodeAsyncCopy, true},
    {"createpolicy", DecodeCachePolicy},
    {"cvt", DecodeConvert},
    {"cvta", DecodeCvta},
    {"fence", DecodeFence},
    {"getctarank", DecodeRankOfAddress},
    {"isspacep", DecodeIsSpaceP},
    {"ld", DecodeMemory},
    {"ldmatrix", DecodeMatrix},
    {"ldu", DecodeMemory},
    {"mapa", DecodeMapAddress, true},
    {"max", DecodeLeastOrMost},
    {"mbarrier", DecodeBarrierObject, true},
    {"min", DecodeLeastOrMost},
    {"mma", DecodeMatrix},
    {"mov", DecodeMove},
    {"multimem", DecodeMultimem},
    {"red", DecodeAtomic},
    {"ret", DecodeReturn},
    {"setmaxnreg", DecodeRegisterCount},
    {"st", DecodeMemory},
    {"stackrestore", DecodeStackRestore},
    {"stacksave", DecodeStackSave},
    {"stmatrix", DecodeMatrix, true},
    {"suld", DecodeTexture},
    {"suq", DecodeTexture},
    {"sured", DecodeTexture},
    {"sust", DecodeTexture},
    {"tcgen05", DecodeTensorCore, true},
    {"tensormap", DecodeTensorMap, true},
    {"tex", DecodeTexture},
    {"tld4", DecodeTexture},
    {"txq", DecodeTexture},
    {"wgmma", DecodeWgmma},
    {"wmma", DecodeMatrix, true},
};
static_assert(std::is_sorted(std::begin(kFamilies), std::end(kFamilies),
                             [](const Family& a, const Family& b) { return a.opcode < b.opcode; }));

constexpr Family kVideo{"", DecodeVideo};
constexpr Family kPlain{"", DecodePlain};

}  // namespace

const Family& FamilyOf(std::string_view opcode) {
  const auto* at = std::lower_bound(std::begin(kFamilies), std::end(kFamilies), opcode,
                                    [](const Family& f, std::string_view name) { return f.opcode < name; });
  if (at != std::end(kFamilies) && at->opcode == opcode) return *at;
  return IsVideo(opcode) ? kVideo : kPlain;
}

}  // namespace vgpud::soft
