// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/quiet_controls.h"

#include <algorithm>
#include <iterator>

namespace vgpud::kernel_side {
namespace {

// Of NV0000_CTRL_CMD_*, NV0080_CTRL_CMD_* and so on, those that NVIDIA's libcuda (535 to 555) asks for.
constexpr uint32_t kQuiet[] = {
    0x136,       // SYSTEM_GET_FABRIC_STATUS
    0x13a,       // SYSTEM_GET_P2P_CAPS_MATRIX
    0x1f0,       // SYSTEM_GET_FEATURES
    0x216,       // GPU_DETACH_IDS
    0x27b,       // GPU_GET_MEMOP_ENABLE
    0xa04,       // SYNC_GPU_BOOST_GROUP_INFO
    0xd04,       // CLIENT_SET_INHERITED_SHARE_POLICY
    0x800289,    // GPU_GET_VIRTUALIZATION_MODE
    0x801307,    // FB_GET_CAPS_V2
    0x801402,    // HOST_GET_CAPS_V2
    0x801909,    // PERF_CUDA_LIMIT_SET_CONTROL
    0x20800119,  // GPU_GET_SIMULATION_INFO
    0x2080012f,  // GPU_QUERY_ECC_STATUS
    0x20800131,  // GPU_QUERY_COMPUTE_MODE_RULES
    0x2080018b,  // GPU_GET_ACTIVE_PARTITION_IDS
    0x208001a3,  // GET_GPU_FABRIC_PROBE_INFO
    0x20801210,  // GR_SET_CTXSW_PREEMPTION_MODE
    0x20801218,  // GR_GET_CTX_BUFFER_SIZE
    0x20801227,  // GR_GET_CAPS_V2
    0x20801230,  // GR_GET_SM_ISSUE_RATE_MODIFIER
    0x20801702,  // MC_SERVICE_INTERRUPTS
    0x20801803,  // BUS_GET_PCI_BAR_INFO
    0x2080182a,  // BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS
    0x2080182b,  // BUS_GET_C2C_INFO
    0x2080200a,  // PERF_BOOST
    0x2080220c,  // RC_RELEASE_WATCHDOG_REQUESTS
    0x20802210,  // RC_SOFT_DISABLE_WATCHDOG
    0x20803002,  // NVLINK_GET_NVLINK_STATUS
    0x20803601,  // GSP_GET_FEATURES
    0x20803801,  // GRMGR_GET_GR_FS_INFO
    0x83de0309,  // DEBUG_SET_EXCEPTION_MASK
    0xcb330101,  // CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES
    // Not in the published headers; seen of libcuda.
    0x80028b,
    0x809909,
    0x20800145,
    0x20800146,
    0x20808159,
    0x20808161,
    0x20808162,
    0x20809038,
    0x20810108,
};

}  // namespace

bool IsQuietControl(uint32_t command) {
  return std::find(std::begin(kQuiet), std::end(kQuiet), command) != std::end(kQuiet);
}

}  // namespace vgpud::kernel_side
