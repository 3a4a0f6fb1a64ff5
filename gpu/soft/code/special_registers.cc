// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/code/special_registers.h"

#include "gpu/soft/code/program.h"

namespace vgpud::soft {
namespace {
using S = SpecialRegister;
constexpr SpecialRegister kTable[] = {
    {"%tid.x", S::kWarp, kTidX},
    {"%tid.y", S::kWarp, kTidY},
    {"%tid.z", S::kWarp, kTidZ},
    {"%ctaid.x", S::kWarp, kCtaidX},
    {"%ctaid.y", S::kWarp, kCtaidY},
    {"%ctaid.z", S::kWarp, kCtaidZ},
    {"%warpid", S::kWarp, kWarpId},
    {"%smid", S::kWarp, kSmId},
    {"%ntid.x", S::kGrid, kNtidX},
    {"%ntid.y", S::kGrid, kNtidY},
    {"%ntid.z", S::kGrid, kNtidZ},
    {"%nctaid.x", S::kGrid, kNctaidX},
    {"%nctaid.y", S::kGrid, kNctaidY},
    {"%nctaid.z", S::kGrid, kNctaidZ},
    {"%nwarpid", S::kGrid, kNwarpId},
    {"%gridid", S::kGrid, kGridId},
    {"%total_smem_size", S::kGrid, kTotalShared},
    {"%aggr_smem_size", S::kGrid, kAllShared},
    {"%dynamic_smem_size", S::kGrid, kDynamicShared},
    {"%cluster_ctaid.x", S::kWarp, kClusterCtaidX},
    {"%cluster_ctaid.y", S::kWarp, kClusterCtaidY},
    {"%cluster_ctaid.z", S::kWarp, kClusterCtaidZ},
    {"%clusterid.x", S::kWarp, kClusterIdX},
    {"%clusterid.y", S::kWarp, kClusterIdY},
    {"%clusterid.z", S::kWarp, kClusterIdZ},
    {"%cluster_ctarank", S::kWarp, kClusterCtaRank},
    {"%cluster_nctaid.x", S::kGrid, kClusterNctaidX},
    {"%cluster_nctaid.y", S::kGrid, kClusterNctaidY},
    {"%cluster_nctaid.z", S::kGrid, kClusterNctaidZ},
    {"%nclusterid.x", S::kGrid, kNclusterIdX},
    {"%nclusterid.y", S::kGrid, kNclusterIdY},
    {"%nclusterid.z", S::kGrid, kNclusterIdZ},
    {"%cluster_nctarank", S::kGrid, kClusterNctaRank},
    {"%nsmid", S::kConstant, kMultiprocessors},
    {"%envreg0", S::kConstant, 0},
    {"%envreg1", S::kGrid, kEnvironment1},
    {"%envreg2", S::kGrid, kEnvironment2},
    {"%reserved_smem_offset_begin", S::kGrid, kReservedSharedBegin},
    {"%reserved_smem_offset_0", S::kGrid, kReservedSharedBegin},
    {"%reserved_smem_offset_1", S::kGrid, kReservedSharedMiddle},
    {"%reserved_smem_offset_end", S::kGrid, kReservedSharedEnd},
    {"%reserved_smem_offset_cap", S::kConstant, kReservedShared},
    {"WARP_SZ", S::kConstant, kLanes},
    {"%laneid", S::kLaneTable, kLaneId},
    {"%lanemask_eq", S::kLaneTable, kMaskEq},
    {"%lanemask_le", S::kLaneTable, kMaskLe},
    {"%lanemask_lt", S::kLaneTable, kMaskLt},
    {"%lanemask_ge", S::kLaneTable, kMaskGe},
    {"%lanemask_gt", S::kLaneTable, kMaskGt},
    {"%clock", S::kRead, 0, "clock"},
    {"%clock64", S::kRead, 0, "clock"},
    {"%clock_hi", S::kRead, 0, "clock_hi"},
    {"%globaltimer", S::kRead, 0, "globaltimer"},
    {"%globaltimer_lo", S::kRead, 0, "globaltimer"},
    {"%globaltimer_hi", S::kRead, 0, "globaltimer_hi"},
};
}  // namespace

const SpecialRegister* FindSpecialRegister(std::string_view name) {
  for (const SpecialRegister& s : kTable)
    if (s.name == name) return &s;
  return nullptr;
}

uint32_t LaneTableValue(const SpecialRegister& reg, uint32_t lane) {
  const uint32_t eq = 1u << lane;
  switch (reg.value) {
    case kMaskEq:
      return eq;
    case kMaskLe:
      return eq | (eq - 1);
    case kMaskLt:
      return eq - 1;
    case kMaskGe:
      return ~(eq - 1);
    case kMaskGt:
      return ~(eq | (eq - 1));
    default:
      return lane;
  }
}

}  // namespace vgpud::soft
