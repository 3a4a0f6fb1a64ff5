// SPDX-License-Identifier: Apache-2.0
// What kernel_side/ takes for granted of NVIDIA's kernel modules, against their headers. Never linked:
// first_contact_test.py compiles it against each version that tests/first_contact/fetch has fetched. Debian has the
// headers of the modules' outside alone; the rest is compared where the folder src/common/sdk/nvidia/inc of the open
// kernel modules is among the includes, too.
#include <nvtypes.h>
// It must come behind nvtypes.h.
#include <nv-ioctl-numa.h>
#include <nv-ioctl-numbers.h>
#include <nv-ioctl.h>
#include <uvm_linux_ioctl.h>

#include "tests/first_contact/kernel_side/abi/control_layouts.h"
#include "tests/first_contact/kernel_side/abi/rm_layouts.h"
#include "tests/first_contact/kernel_side/abi/uvm_layouts.h"

namespace vgpud::kernel_side {

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<uint32_t>(ours) == static_cast<uint32_t>(theirs))
#define SAME_PLACE(ours, our_member, theirs, their_member) \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member))
#define SAME_BYTES(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))

SAME_NUMBER(kCardInfo, NV_ESC_CARD_INFO);
SAME_NUMBER(kRegisterFd, NV_ESC_REGISTER_FD);
SAME_NUMBER(kAllocOsEvent, NV_ESC_ALLOC_OS_EVENT);
SAME_NUMBER(kFreeOsEvent, NV_ESC_FREE_OS_EVENT);
SAME_NUMBER(kStatusCode, NV_ESC_STATUS_CODE);
SAME_NUMBER(kCheckVersion, NV_ESC_CHECK_VERSION_STR);
SAME_NUMBER(kTransfer, NV_ESC_IOCTL_XFER_CMD);
SAME_NUMBER(kAttachGpus, NV_ESC_ATTACH_GPUS_TO_FD);
SAME_NUMBER(kSysParams, NV_ESC_SYS_PARAMS);
SAME_NUMBER(kNumaInfo, NV_ESC_NUMA_INFO);
SAME_BYTES(CardInfo, nv_ioctl_card_info_t);
SAME_PLACE(CardInfo, vendor, nv_ioctl_card_info_t, pci_info.vendor_id);
SAME_PLACE(CardInfo, gpu_id, nv_ioctl_card_info_t, gpu_id);
SAME_PLACE(CardInfo, memory_bytes, nv_ioctl_card_info_t, fb_size);
SAME_PLACE(CardInfo, minor, nv_ioctl_card_info_t, minor_number);
SAME_BYTES(Version, nv_ioctl_rm_api_version_t);
SAME_PLACE(Version, text, nv_ioctl_rm_api_version_t, versionString);
SAME_NUMBER(kVersionRecognized, NV_RM_API_VERSION_REPLY_RECOGNIZED);
SAME_BYTES(Transfer, nv_ioctl_xfer_t);
SAME_BYTES(OsEvent, nv_ioctl_alloc_os_event_t);
SAME_PLACE(OsEvent, status, nv_ioctl_free_os_event_t, Status);
SAME_BYTES(StatusCode, nv_ioctl_status_code_t);
SAME_PLACE(StatusCode, status, nv_ioctl_status_code_t, status);
SAME_PLACE(NumaInfo, status, nv_ioctl_numa_info_t, status);

SAME_NUMBER(kUvmInitializeSpace, UVM_INITIALIZE);
SAME_NUMBER(kUvmDeinitialize, UVM_DEINITIALIZE);
SAME_NUMBER(kUvmCreateRangeGroup, UVM_CREATE_RANGE_GROUP);
SAME_NUMBER(kUvmDestroyRangeGroup, UVM_DESTROY_RANGE_GROUP);
SAME_NUMBER(kUvmRegisterVaSpace, UVM_REGISTER_GPU_VASPACE);
SAME_NUMBER(kUvmUnregisterVaSpace, UVM_UNREGISTER_GPU_VASPACE);
SAME_NUMBER(kUvmRegisterChannel, UVM_REGISTER_CHANNEL);
SAME_NUMBER(kUvmUnregisterChannel, UVM_UNREGISTER_CHANNEL);
SAME_NUMBER(kUvmEnablePeers, UVM_ENABLE_PEER_ACCESS);
SAME_NUMBER(kUvmDisablePeers, UVM_DISABLE_PEER_ACCESS);
SAME_NUMBER(kUvmSetRangeGroup, UVM_SET_RANGE_GROUP);
SAME_NUMBER(kUvmMapExternal, UVM_MAP_EXTERNAL_ALLOCATION);
SAME_NUMBER(kUvmFree, UVM_FREE);
SAME_NUMBER(kUvmRegisterGpu, UVM_REGISTER_GPU);
SAME_NUMBER(kUvmUnregisterGpu, UVM_UNREGISTER_GPU);
SAME_NUMBER(kUvmPageableAccess, UVM_PAGEABLE_MEM_ACCESS);
SAME_NUMBER(kUvmMapDynamicParallelism, UVM_MAP_DYNAMIC_PARALLELISM_REGION);
SAME_NUMBER(kUvmUnmapExternal, UVM_UNMAP_EXTERNAL);
SAME_NUMBER(kUvmAllocSemaphorePool, UVM_ALLOC_SEMAPHORE_POOL);
SAME_NUMBER(kUvmCleanUp, UVM_CLEAN_UP_ZOMBIE_RESOURCES);
SAME_NUMBER(kUvmPageableAccessOnGpu, UVM_PAGEABLE_MEM_ACCESS_ON_GPU);
SAME_NUMBER(kUvmValidateRange, UVM_VALIDATE_VA_RANGE);
SAME_NUMBER(kUvmCreateExternalRange, UVM_CREATE_EXTERNAL_RANGE);
SAME_NUMBER(kUvmMapSparse, UVM_MAP_EXTERNAL_SPARSE);
SAME_NUMBER(kUvmMmInitialize, UVM_MM_INITIALIZE);
SAME_BYTES(UvmRegisterVaSpace, UVM_REGISTER_GPU_VASPACE_PARAMS);
SAME_PLACE(UvmRegisterVaSpace, client, UVM_REGISTER_GPU_VASPACE_PARAMS, hClient);
SAME_PLACE(UvmRegisterVaSpace, va_space, UVM_REGISTER_GPU_VASPACE_PARAMS, hVaSpace);
static_assert(kUvmAttributesBytes == sizeof(UvmGpuMappingAttributes));
inline constexpr size_t kBeforeEnd = offsetof(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, gpuAttributesCount);
static_assert(kBeforeEnd - sizeof(UvmMapExternal) == kUvmAttributesBytes * UvmMostCards(DRIVER_MAJOR));
static_assert(offsetof(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, hMemory) ==
              kBeforeEnd + offsetof(UvmMapExternalEnd, memory));
static_assert(sizeof(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS) == kBeforeEnd + sizeof(UvmMapExternalEnd));
// The rows of uvm_requests.cc.
#define SAME_ROW(params, bytes, status)     \
  static_assert(sizeof(params) == (bytes)); \
  static_assert(offsetof(params, rmStatus) == (status))
inline constexpr size_t kAttributes = kUvmAttributesBytes * UvmMostCards(DRIVER_MAJOR);
SAME_ROW(UVM_INITIALIZE_PARAMS, 16, 8);
SAME_ROW(UVM_CREATE_RANGE_GROUP_PARAMS, 16, 8);
SAME_ROW(UVM_DESTROY_RANGE_GROUP_PARAMS, 16, 8);
SAME_ROW(UVM_REGISTER_GPU_VASPACE_PARAMS, 32, 28);
SAME_ROW(UVM_UNREGISTER_GPU_VASPACE_PARAMS, 20, 16);
SAME_ROW(UVM_REGISTER_CHANNEL_PARAMS, 56, 48);
SAME_ROW(UVM_UNREGISTER_CHANNEL_PARAMS, 28, 24);
SAME_ROW(UVM_ENABLE_PEER_ACCESS_PARAMS, 36, 32);
SAME_ROW(UVM_DISABLE_PEER_ACCESS_PARAMS, 36, 32);
SAME_ROW(UVM_SET_RANGE_GROUP_PARAMS, 32, 24);
SAME_ROW(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, 48 + kAttributes, 44 + kAttributes);
SAME_ROW(UVM_FREE_PARAMS, 24, 16);
SAME_ROW(UVM_REGISTER_GPU_PARAMS, 40, 36);
SAME_ROW(UVM_UNREGISTER_GPU_PARAMS, 20, 16);
SAME_ROW(UVM_PAGEABLE_MEM_ACCESS_PARAMS, 8, 4);
SAME_ROW(UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS, 40, 32);
SAME_ROW(UVM_UNMAP_EXTERNAL_PARAMS, 40, 32);
SAME_ROW(UVM_ALLOC_SEMAPHORE_POOL_PARAMS, 32 + kAttributes, 24 + kAttributes);
SAME_ROW(UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS, 4, 0);
SAME_ROW(UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS, 24, 20);
SAME_ROW(UVM_VALIDATE_VA_RANGE_PARAMS, 24, 16);
SAME_ROW(UVM_CREATE_EXTERNAL_RANGE_PARAMS, 24, 16);
SAME_ROW(UVM_MAP_EXTERNAL_SPARSE_PARAMS, 40, 32);
SAME_ROW(UVM_MM_INITIALIZE_PARAMS, 8, 4);

}  // namespace vgpud::kernel_side

#if __has_include(<nvos.h>)
#include <alloc/alloc_channel.h>
#include <class/cl0005.h>
#include <class/cl0080.h>
#include <ctrl/ctrl0000/ctrl0000client.h>
#include <ctrl/ctrl0000/ctrl0000gpu.h>
#include <ctrl/ctrl0000/ctrl0000system.h>
#include <ctrl/ctrl0080.h>
#include <ctrl/ctrl2080.h>
#include <ctrl/ctrl83de/ctrl83dedebug.h>
#include <ctrl/ctrl906f.h>
#include <ctrl/ctrla06c.h>
#include <ctrl/ctrlc36f.h>
#include <nvos.h>

namespace vgpud::kernel_side {

SAME_BYTES(UnmapMemory, NVOS34_PARAMETERS);
SAME_BYTES(MapMemoryDma, NVOS46_PARAMETERS);
SAME_PLACE(MapMemoryDma, address, NVOS46_PARAMETERS, dmaOffset);
SAME_PLACE(UnmapMemoryDma, address, NVOS47_PARAMETERS, dmaOffset);
static_assert(offsetof(NVOS47_PARAMETERS, status) ==
              (DRIVER_MAJOR < 550 ? kOldUnmapStatus : offsetof(UnmapMemoryDma, status)));
SAME_BYTES(DupObject, NVOS55_PARAMETERS);
SAME_PLACE(DupObject, from_object, NVOS55_PARAMETERS, hObjectSrc);
SAME_BYTES(UpdateMapping, NVOS56_PARAMETERS);
SAME_BYTES(Share, NVOS57_PARAMETERS);
SAME_PLACE(Share, status, NVOS57_PARAMETERS, status);
SAME_PLACE(AllocMemory, limit, NVOS02_PARAMETERS, limit);
SAME_PLACE(AllocMemory, status, NVOS02_PARAMETERS, status);
static_assert(offsetof(AllocMemory, fd) == sizeof(NVOS02_PARAMETERS));
SAME_PLACE(MapMemory, bytes, NVOS33_PARAMETERS, length);
SAME_PLACE(MapMemory, status, NVOS33_PARAMETERS, status);
static_assert(offsetof(MapMemory, fd) == sizeof(NVOS33_PARAMETERS));
static_assert(kVidHeapBytes == sizeof(NVOS32_PARAMETERS));
SAME_PLACE(VidHeap, status, NVOS32_PARAMETERS, status);
SAME_PLACE(VidHeap, memory, NVOS32_PARAMETERS, data.AllocSize.hMemory);
SAME_PLACE(VidHeap, flags, NVOS32_PARAMETERS, data.AllocSize.flags);
SAME_PLACE(VidHeap, bytes, NVOS32_PARAMETERS, data.AllocSize.size);
SAME_PLACE(VidHeap, limit, NVOS32_PARAMETERS, data.AllocSize.limit);
SAME_NUMBER(kAllocateSize, NVOS32_FUNCTION_ALLOC_SIZE);
SAME_NUMBER(kFreeMemory, NVOS32_FUNCTION_FREE);
SAME_NUMBER(kVirtualFlag, NVOS32_ALLOC_FLAGS_VIRTUAL);
SAME_PLACE(MemoryParams, bytes, NV_MEMORY_ALLOCATION_PARAMS, size);
SAME_PLACE(MemoryParams, limit, NV_MEMORY_ALLOCATION_PARAMS, limit);
SAME_PLACE(MemoryParams, va_space, NV_MEMORY_ALLOCATION_PARAMS, hVASpace);
SAME_BYTES(EventParams, NV0005_ALLOC_PARAMETERS);
SAME_PLACE(EventParams, notify_index, NV0005_ALLOC_PARAMETERS, notifyIndex);
SAME_BYTES(DeviceParams, NV0080_ALLOC_PARAMETERS);
SAME_BYTES(VaSpaceParams, NV_VASPACE_ALLOCATION_PARAMETERS);
SAME_PLACE(ChannelGroupParams, va_space, NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS, hVASpace);
SAME_PLACE(ContextShareParams, va_space, NV_CTXSHARE_ALLOCATION_PARAMETERS, hVASpace);
SAME_PLACE(ChannelParams, fifo, NV_CHANNEL_ALLOC_PARAMS, gpFifoOffset);
SAME_PLACE(ChannelParams, userd_memory, NV_CHANNEL_ALLOC_PARAMS, hUserdMemory);
SAME_PLACE(ChannelParams, userd_offset, NV_CHANNEL_ALLOC_PARAMS, userdOffset);
SAME_PLACE(ChannelParams, engine, NV_CHANNEL_ALLOC_PARAMS, engineType);

SAME_NUMBER(kGetBuildVersion, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION);
SAME_BYTES(BuildVersion, NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS);
SAME_NUMBER(kGetAttachedIds, NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS);
SAME_NUMBER(kGetProbedIds, NV0000_CTRL_CMD_GPU_GET_PROBED_IDS);
SAME_NUMBER(kAttachIds, NV0000_CTRL_CMD_GPU_ATTACH_IDS);
SAME_NUMBER(kGetIdInfo, NV0000_CTRL_CMD_GPU_GET_ID_INFO);
SAME_BYTES(GpuIdInfo, NV0000_CTRL_GPU_GET_ID_INFO_PARAMS);
SAME_NUMBER(kGetIdInfo2, NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2);
SAME_BYTES(GpuIdInfo2, NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS);
SAME_NUMBER(kGetAddressSpaceType, NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE);
SAME_BYTES(AddressSpaceType, NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS);
SAME_NUMBER(kGetSubdeviceCount, NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES);
SAME_NUMBER(kGetClassList2, NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2);
SAME_NUMBER(kGetDeviceGrInfo, NV0080_CTRL_CMD_GR_GET_INFO);
SAME_NUMBER(kGetDeviceGrInfo2, NV0080_CTRL_CMD_GR_GET_INFO_V2);
SAME_NUMBER(kGetChannelNumbers, NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST);
SAME_BYTES(ChannelNumbers, NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS);
SAME_NUMBER(kGetGpuInfo2, NV2080_CTRL_CMD_GPU_GET_INFO_V2);
SAME_NUMBER(kGetNameString, NV2080_CTRL_CMD_GPU_GET_NAME_STRING);
SAME_NUMBER(kGetShortName, NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING);
SAME_NUMBER(kGetEngineClasses, NV2080_CTRL_CMD_GPU_GET_ENGINE_CLASSLIST);
SAME_BYTES(EngineClasses, NV2080_CTRL_GPU_GET_ENGINE_CLASSLIST_PARAMS);
SAME_NUMBER(kGetGid, NV2080_CTRL_CMD_GPU_GET_GID_INFO);
SAME_BYTES(GidInfo, NV2080_CTRL_GPU_GET_GID_INFO_PARAMS);
SAME_NUMBER(kGetEngines2, NV2080_CTRL_CMD_GPU_GET_ENGINES_V2);
SAME_NUMBER(kGetGrInfo, NV2080_CTRL_CMD_GR_GET_INFO);
SAME_NUMBER(kGetSmOrder, NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER);
SAME_PLACE(SmOrder, sm_count, NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS, numSm);
SAME_NUMBER(kGetGpcMask, NV2080_CTRL_CMD_GR_GET_GPC_MASK);
SAME_BYTES(GpcMask, NV2080_CTRL_GR_GET_GPC_MASK_PARAMS);
SAME_NUMBER(kGetTpcMask, NV2080_CTRL_CMD_GR_GET_TPC_MASK);
SAME_BYTES(TpcMask, NV2080_CTRL_GR_GET_TPC_MASK_PARAMS);
SAME_NUMBER(kGetFbInfo, NV2080_CTRL_CMD_FB_GET_INFO);
SAME_BYTES(InfoList, NV2080_CTRL_FB_GET_INFO_PARAMS);
SAME_NUMBER(kGetFbInfo2, NV2080_CTRL_CMD_FB_GET_INFO_V2);
SAME_NUMBER(kGetArchInfo, NV2080_CTRL_CMD_MC_GET_ARCH_INFO);
SAME_BYTES(ArchInfo, NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS);
SAME_NUMBER(kGetPciInfo, NV2080_CTRL_CMD_BUS_GET_PCI_INFO);
SAME_BYTES(PciInfo, NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS);
SAME_NUMBER(kGetBusInfo, NV2080_CTRL_CMD_BUS_GET_INFO);
SAME_NUMBER(kGetBusInfo2, NV2080_CTRL_CMD_BUS_GET_INFO_V2);
SAME_NUMBER(kGetCopyCaps2, NV2080_CTRL_CMD_CE_GET_CAPS_V2);
SAME_BYTES(CopyCaps, NV2080_CTRL_CE_GET_CAPS_V2_PARAMS);
SAME_NUMBER(kGetAllCopyCaps, NV2080_CTRL_CMD_CE_GET_ALL_CAPS);
SAME_NUMBER(kReadSmErrors, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES);
SAME_BYTES(SmErrors, NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS);
SAME_PLACE(SmErrors, mmu_fault, NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS, mmuFault.valid);
SAME_NUMBER(kClearSmErrors, NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES);
SAME_NUMBER(kGetClassEngine, NV906F_CTRL_GET_CLASS_ENGINEID);
SAME_BYTES(ClassEngine, NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS);
SAME_NUMBER(kResetChannel, NV906F_CTRL_CMD_RESET_CHANNEL);
SAME_NUMBER(kGetSubmitToken, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN);

}  // namespace vgpud::kernel_side
#endif
