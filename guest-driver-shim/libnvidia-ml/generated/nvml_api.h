// SPDX-License-Identifier: Apache-2.0
// Made by guest-driver-shim/libnvidia-ml/gen/nvml_tables.py from nvml.h 12.4.127. Do not edit.
#pragma once

using nvmlReturn_t = int;
struct nvmlAccountingStats_st;
struct nvmlBAR1Memory_st;
struct nvmlBridgeChipHierarchy_st;
struct nvmlC2cModeInfo_v1_t;
struct nvmlClkMonStatus_status;
struct nvmlComputeInstanceInfo_st;
struct nvmlComputeInstancePlacement_st;
struct nvmlComputeInstanceProfileInfo_st;
struct nvmlComputeInstanceProfileInfo_v2_st;
struct nvmlComputeInstance_st;
struct nvmlConfComputeGetKeyRotationThresholdInfo_st;
struct nvmlConfComputeGpuAttestationReport_st;
struct nvmlConfComputeGpuCertificate_st;
struct nvmlConfComputeMemSizeInfo_st;
struct nvmlConfComputeSetKeyRotationThresholdInfo_st;
struct nvmlConfComputeSystemCaps_st;
struct nvmlConfComputeSystemState_st;
struct nvmlDeviceAttributes_st;
struct nvmlDevice_st;
struct nvmlEccErrorCounts_st;
struct nvmlEccSramErrorStatus_v1_t;
struct nvmlEncoderSessionInfo_st;
struct nvmlEventData_st;
struct nvmlEventSet_st;
struct nvmlExcludedDeviceInfo_st;
struct nvmlFBCSessionInfo_st;
struct nvmlFBCStats_st;
struct nvmlFieldValue_st;
struct nvmlGpmMetricsGet_t;
struct nvmlGpmSample_st;
struct nvmlGpmSupport_t;
struct nvmlGpuDynamicPstatesInfo_st;
struct nvmlGpuFabricInfo_t;
struct nvmlGpuFabricInfo_v2_t;
struct nvmlGpuInstanceInfo_st;
struct nvmlGpuInstancePlacement_st;
struct nvmlGpuInstanceProfileInfo_st;
struct nvmlGpuInstanceProfileInfo_v2_st;
struct nvmlGpuInstance_st;
struct nvmlGpuThermalSettings_t;
struct nvmlGridLicensableFeatures_st;
struct nvmlHwbcEntry_st;
struct nvmlLedState_st;
struct nvmlMemory_st;
struct nvmlMemory_v2_st;
struct nvmlNvLinkPowerThres_st;
struct nvmlNvLinkUtilizationControl_st;
struct nvmlPSUInfo_st;
struct nvmlPciInfoExt_v1_t;
struct nvmlPciInfo_st;
struct nvmlPowerValue_v2_t;
struct nvmlProcessDetailList_v1_t;
struct nvmlProcessInfo_v1_st;
struct nvmlProcessInfo_v2_st;
struct nvmlProcessUtilizationInfo_v1_t;
struct nvmlProcessUtilizationSample_st;
struct nvmlProcessesUtilizationInfo_v1_t;
struct nvmlRowRemapperHistogramValues_st;
struct nvmlSample_st;
struct nvmlSystemConfComputeSettings_v1_t;
struct nvmlUnitFanSpeeds_st;
struct nvmlUnitInfo_st;
struct nvmlUnit_st;
struct nvmlUtilization_st;
struct nvmlVgpuHeterogeneousMode_v1_t;
struct nvmlVgpuInstanceUtilizationSample_st;
struct nvmlVgpuInstancesUtilizationInfo_v1_t;
struct nvmlVgpuLicenseInfo_st;
struct nvmlVgpuMetadata_st;
struct nvmlVgpuPgpuCompatibility_st;
struct nvmlVgpuPgpuMetadata_st;
struct nvmlVgpuPlacementId_v1_t;
struct nvmlVgpuPlacementList_v1_t;
struct nvmlVgpuProcessUtilizationSample_st;
struct nvmlVgpuProcessesUtilizationInfo_v1_t;
struct nvmlVgpuSchedulerCapabilities_st;
struct nvmlVgpuSchedulerGetState_st;
struct nvmlVgpuSchedulerLog_st;
struct nvmlVgpuSchedulerSetState_st;
struct nvmlVgpuVersion_st;
struct nvmlViolationTime_st;
using nvmlDevice_t = nvmlDevice_st*;
using nvmlEventSet_t = nvmlEventSet_st*;

enum : int {
  // nvmlReturn_enum
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
  NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_NOT_READY = 27,
  NVML_ERROR_GPU_NOT_FOUND = 28,
  NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_UNKNOWN = 999,
  // nvmlBrandType_enum
  NVML_BRAND_UNKNOWN = 0,
  NVML_BRAND_QUADRO = 1,
  NVML_BRAND_TESLA = 2,
  NVML_BRAND_NVS = 3,
  NVML_BRAND_GRID = 4,
  NVML_BRAND_GEFORCE = 5,
  NVML_BRAND_TITAN = 6,
  NVML_BRAND_NVIDIA_VAPPS = 7,
  NVML_BRAND_NVIDIA_VPC = 8,
  NVML_BRAND_NVIDIA_VCS = 9,
  NVML_BRAND_NVIDIA_VWS = 10,
  NVML_BRAND_NVIDIA_CLOUD_GAMING = 11,
  NVML_BRAND_NVIDIA_VGAMING = 11,
  NVML_BRAND_QUADRO_RTX = 12,
  NVML_BRAND_NVIDIA_RTX = 13,
  NVML_BRAND_NVIDIA = 14,
  NVML_BRAND_GEFORCE_RTX = 15,
  NVML_BRAND_TITAN_RTX = 16,
  NVML_BRAND_COUNT = 17,
  // nvmlComputeMode_enum
  NVML_COMPUTEMODE_DEFAULT = 0,
  NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
  NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
  NVML_COMPUTEMODE_COUNT = 4,
  // nvmlEnableState_enum
  NVML_FEATURE_DISABLED = 0,
  NVML_FEATURE_ENABLED = 1,
  // nvmlGpuVirtualizationMode
  NVML_GPU_VIRTUALIZATION_MODE_NONE = 0,
  NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1,
  NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2,
  NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3,
  NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4,
  // nvmlGpuP2PStatus_enum
  NVML_P2P_STATUS_OK = 0,
  NVML_P2P_STATUS_CHIPSET_NOT_SUPPORED = 1,
  NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
  NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
  NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
  NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4,
  NVML_P2P_STATUS_NOT_SUPPORTED = 5,
  NVML_P2P_STATUS_UNKNOWN = 6,
  // nvmlGpuP2PCapsIndex_enum
  NVML_P2P_CAPS_INDEX_READ = 0,
  NVML_P2P_CAPS_INDEX_WRITE = 1,
  NVML_P2P_CAPS_INDEX_NVLINK = 2,
  NVML_P2P_CAPS_INDEX_ATOMICS = 3,
  NVML_P2P_CAPS_INDEX_PCI = 4,
  NVML_P2P_CAPS_INDEX_PROP = 4,
  NVML_P2P_CAPS_INDEX_UNKNOWN = 5,
  // nvmlGpuLevel_enum
  NVML_TOPOLOGY_INTERNAL = 0,
  NVML_TOPOLOGY_SINGLE = 10,
  NVML_TOPOLOGY_MULTIPLE = 20,
  NVML_TOPOLOGY_HOSTBRIDGE = 30,
  NVML_TOPOLOGY_NODE = 40,
  NVML_TOPOLOGY_SYSTEM = 50,
};
inline constexpr unsigned NVML_DEVICE_ARCH_UNKNOWN = 0xffffffff;
inline constexpr unsigned NVML_INIT_FLAG_NO_GPUS = 1;
inline constexpr unsigned NVML_INIT_FLAG_NO_ATTACH = 2;
inline constexpr unsigned NVML_DEVICE_UUID_BUFFER_SIZE = 80;
inline constexpr unsigned NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96;
inline constexpr unsigned NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80;
inline constexpr unsigned NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE = 80;
inline constexpr unsigned NVML_DEVICE_NAME_BUFFER_SIZE = 64;
inline constexpr unsigned NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96;

struct nvmlPciInfo_st {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
};
static_assert(sizeof(nvmlPciInfo_st) == 68);
using nvmlPciInfo_t = nvmlPciInfo_st;
struct nvmlPciInfoExt_v1_t {
  unsigned int version;
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  unsigned int baseClass;
  unsigned int subClass;
  char busId[32];
};
static_assert(sizeof(nvmlPciInfoExt_v1_t) == 64);
struct nvmlMemory_st {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(nvmlMemory_st) == 24);
using nvmlMemory_t = nvmlMemory_st;
struct nvmlMemory_v2_st {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(nvmlMemory_v2_st) == 40);
using nvmlMemory_v2_t = nvmlMemory_v2_st;
struct nvmlUtilization_st {
  unsigned int gpu;
  unsigned int memory;
};
static_assert(sizeof(nvmlUtilization_st) == 8);
using nvmlUtilization_t = nvmlUtilization_st;
struct nvmlProcessInfo_v1_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
};
static_assert(sizeof(nvmlProcessInfo_v1_st) == 16);
using nvmlProcessInfo_v1_t = nvmlProcessInfo_v1_st;
struct nvmlProcessInfo_v2_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
static_assert(sizeof(nvmlProcessInfo_v2_st) == 24);
using nvmlProcessInfo_v2_t = nvmlProcessInfo_v2_st;
struct nvmlProcessUtilizationSample_st {
  unsigned int pid;
  unsigned long long timeStamp;
  unsigned int smUtil;
  unsigned int memUtil;
  unsigned int encUtil;
  unsigned int decUtil;
};
static_assert(sizeof(nvmlProcessUtilizationSample_st) == 32);
using nvmlProcessUtilizationSample_t = nvmlProcessUtilizationSample_st;
struct nvmlProcessUtilizationInfo_v1_t {
  unsigned long long timeStamp;
  unsigned int pid;
  unsigned int smUtil;
  unsigned int memUtil;
  unsigned int encUtil;
  unsigned int decUtil;
  unsigned int jpgUtil;
  unsigned int ofaUtil;
};
static_assert(sizeof(nvmlProcessUtilizationInfo_v1_t) == 40);
struct nvmlProcessesUtilizationInfo_v1_t {
  unsigned int version;
  unsigned int processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  nvmlProcessUtilizationInfo_v1_t * procUtilArray;
};
static_assert(sizeof(nvmlProcessesUtilizationInfo_v1_t) == 24);
union nvmlValue_st {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  long long sllVal;
};
struct nvmlFieldValue_st {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  int valueType;
  int nvmlReturn;
  nvmlValue_st value;
};
static_assert(sizeof(nvmlFieldValue_st) == 40);
using nvmlFieldValue_t = nvmlFieldValue_st;
struct nvmlEventData_st {
  nvmlDevice_st * device;
  unsigned long long eventType;
  unsigned long long eventData;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
static_assert(sizeof(nvmlEventData_st) == 32);
using nvmlEventData_t = nvmlEventData_st;
inline constexpr unsigned nvmlPciInfoExt_v1 = sizeof(nvmlPciInfoExt_v1_t) | 1u << 24;
inline constexpr unsigned nvmlMemory_v2 = sizeof(nvmlMemory_v2_t) | 2u << 24;
inline constexpr unsigned nvmlProcessesUtilizationInfo_v1 = sizeof(nvmlProcessesUtilizationInfo_v1_t) | 1u << 24;

extern "C" {
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_st *);
nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_st *, nvmlComputeInstanceInfo_st *);
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_st *, nvmlComputeInstanceInfo_st *);
nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_st *);
nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_st *);
nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_st *, int, nvmlFieldValue_st *);
nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_st *, unsigned int, nvmlGpuInstance_st **);
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_st *, unsigned int, const nvmlGpuInstancePlacement_st *, nvmlGpuInstance_st **);
nvmlReturn_t nvmlDeviceDiscoverGpus(nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceFreezeNvLinkUtilizationCounter(nvmlDevice_st *, unsigned int, unsigned int, int);
nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_st *, int, int *);
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_st *, unsigned int, nvmlAccountingStats_st *);
nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_st *, nvmlDeviceAttributes_st *);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_st *, nvmlDeviceAttributes_st *);
nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_st *, nvmlBAR1Memory_st *);
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_st *, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_st *, nvmlBridgeChipHierarchy_st *);
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_st *, nvmlC2cModeInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_st *, nvmlClkMonStatus_status *);
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_st *, int, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v1_st *);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetConfComputeGpuAttestationReport(nvmlDevice_st *, nvmlConfComputeGpuAttestationReport_st *);
nvmlReturn_t nvmlDeviceGetConfComputeGpuCertificate(nvmlDevice_st *, nvmlConfComputeGpuCertificate_st *);
nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_st *, nvmlConfComputeMemSizeInfo_st *);
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_st *, nvmlMemory_st *);
nvmlReturn_t nvmlDeviceGetCount(unsigned int *);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_st *, unsigned int, unsigned long *);
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_st *, unsigned int, unsigned long *, unsigned int);
nvmlReturn_t nvmlDeviceGetCreatableVgpus(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_st *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_st *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_st *, int, int, nvmlEccErrorCounts_st *);
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_st *, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_st *, nvmlGpuDynamicPstatesInfo_st *);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_st *, unsigned int *, nvmlEncoderSessionInfo_st *);
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_st *, unsigned int *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_st *, unsigned int *, nvmlFBCSessionInfo_st *);
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_st *, nvmlFBCStats_st *);
nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_st *, int, nvmlFieldValue_st *);
nvmlReturn_t nvmlDeviceGetGpcClkMinMaxVfOffset(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetGpcClkVfOffset(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_st *, nvmlGpuFabricInfo_t *);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_st *, nvmlGpuFabricInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_st *, unsigned int, nvmlGpuInstance_st **);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_st *, unsigned int, nvmlGpuInstancePlacement_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_st *, unsigned int, nvmlGpuInstancePlacement_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_st *, unsigned int, nvmlGpuInstanceProfileInfo_st *);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_st *, unsigned int, nvmlGpuInstanceProfileInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_st *, unsigned int, nvmlGpuInstance_st **, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v1_st *);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_st *, nvmlGridLicensableFeatures_st *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_st *, nvmlGridLicensableFeatures_st *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_st *, nvmlGridLicensableFeatures_st *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_st *, nvmlGridLicensableFeatures_st *);
nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_st *, char *);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_st *, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_st *, int, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_st *, unsigned long long *, unsigned long *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v1_st *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_st *, unsigned int *, nvmlProcessInfo_v2_st *);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMemClkMinMaxVfOffset(nvmlDevice_st *, int *, int *);
nvmlReturn_t nvmlDeviceGetMemClkVfOffset(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_st *, unsigned int, unsigned long *, unsigned int);
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_st *, int, int, int, unsigned long long *);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_st *, nvmlMemory_st *);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_st *, nvmlMemory_v2_st *);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_st *, unsigned int, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_st *, int, int, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_st *, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_st *, unsigned int, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_st *, unsigned int, int, unsigned long long *);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_st *, unsigned int, int *);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_st *, unsigned int, nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_st *, unsigned int, nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_st *, unsigned int, int *);
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationControl(nvmlDevice_st *, unsigned int, unsigned int, nvmlNvLinkUtilizationControl_st *);
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_st *, unsigned int, unsigned int, unsigned long long *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_st *, nvmlDevice_st *, int, int *);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_st *, nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_st *, nvmlPciInfoExt_v1_t *);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_st *, nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_st *, nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetPgpuMetadataString(nvmlDevice_st *, char *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_st *, nvmlProcessUtilizationSample_st *, unsigned int *, unsigned long long);
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_st *, nvmlProcessesUtilizationInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_st *, unsigned int *, unsigned int *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_st *, int, unsigned int *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_st *, int, unsigned int *, unsigned long long *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_st *, nvmlRowRemapperHistogramValues_st *);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_st *, nvmlProcessDetailList_v1_t *);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_st *, int, unsigned long long, int *, unsigned int *, nvmlSample_st *);
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_st *, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_st *, nvmlEccSramErrorStatus_v1_t *);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_st *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_st *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_st *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_st *, unsigned int, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_st *, int *, unsigned int);
nvmlReturn_t nvmlDeviceGetSupportedVgpus(nvmlDevice_st *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_st *, unsigned int, nvmlGpuThermalSettings_t *);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_st *, nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_st *, int, unsigned int *, nvmlDevice_st **);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_st *, int, int, unsigned long long *);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_st *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_st *, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_st *, nvmlUtilization_st *);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_st *, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetVgpuCapabilities(nvmlDevice_st *, int, unsigned int *);
nvmlReturn_t nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_st *, nvmlVgpuHeterogeneousMode_v1_t *);
nvmlReturn_t nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_st *, nvmlVgpuInstancesUtilizationInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetVgpuMetadata(nvmlDevice_st *, nvmlVgpuPgpuMetadata_st *, unsigned int *);
nvmlReturn_t nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_st *, unsigned long long, unsigned int *, nvmlVgpuProcessUtilizationSample_st *);
nvmlReturn_t nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_st *, nvmlVgpuProcessesUtilizationInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_st *, nvmlVgpuSchedulerCapabilities_st *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_st *, nvmlVgpuSchedulerLog_st *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerState(nvmlDevice_st *, nvmlVgpuSchedulerGetState_st *);
nvmlReturn_t nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_st *, unsigned int, nvmlVgpuPlacementList_v1_t *);
nvmlReturn_t nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_st *, unsigned int, nvmlVgpuPlacementList_v1_t *);
nvmlReturn_t nvmlDeviceGetVgpuUtilization(nvmlDevice_st *, unsigned long long, int *, unsigned int *, nvmlVgpuInstanceUtilizationSample_st *);
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_st *, int, nvmlViolationTime_st *);
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_st *, int);
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_st *, nvmlDevice_st *, int *);
nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_st *, int *);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_st *, unsigned long long, nvmlEventSet_st *);
nvmlReturn_t nvmlDeviceRemoveGpu(nvmlPciInfo_st *);
nvmlReturn_t nvmlDeviceRemoveGpu_v2(nvmlPciInfo_st *, int, int);
nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_st *);
nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_st *);
nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_st *);
nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_st *, unsigned int);
nvmlReturn_t nvmlDeviceResetNvLinkUtilizationCounter(nvmlDevice_st *, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetAPIRestriction(nvmlDevice_st *, int, int);
nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_st *, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetAutoBoostedClocksEnabled(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetConfComputeUnprotectedMemSize(nvmlDevice_st *, unsigned long long);
nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_st *);
nvmlReturn_t nvmlDeviceSetDefaultAutoBoostedClocksEnabled(nvmlDevice_st *, int, unsigned int);
nvmlReturn_t nvmlDeviceSetDefaultFanSpeed_v2(nvmlDevice_st *, unsigned int);
nvmlReturn_t nvmlDeviceSetDriverModel(nvmlDevice_st *, int, unsigned int);
nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetFanControlPolicy(nvmlDevice_st *, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetFanSpeed_v2(nvmlDevice_st *, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetGpcClkVfOffset(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_st *, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetGpuOperationMode(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetMemClkVfOffset(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_st *, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_st *, unsigned int, int *);
nvmlReturn_t nvmlDeviceSetNvLinkDeviceLowPowerThreshold(nvmlDevice_st *, nvmlNvLinkPowerThres_st *);
nvmlReturn_t nvmlDeviceSetNvLinkUtilizationControl(nvmlDevice_st *, unsigned int, unsigned int, nvmlNvLinkUtilizationControl_st *, unsigned int);
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_st *, unsigned int);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_st *, nvmlPowerValue_v2_t *);
nvmlReturn_t nvmlDeviceSetTemperatureThreshold(nvmlDevice_st *, int, int *);
nvmlReturn_t nvmlDeviceSetVgpuCapabilities(nvmlDevice_st *, int, int);
nvmlReturn_t nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_st *, const nvmlVgpuHeterogeneousMode_v1_t *);
nvmlReturn_t nvmlDeviceSetVgpuSchedulerState(nvmlDevice_st *, nvmlVgpuSchedulerSetState_st *);
nvmlReturn_t nvmlDeviceSetVirtualizationMode(nvmlDevice_st *, int);
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_st *);
const char *nvmlErrorString(int);
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_st **);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_st *);
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_st *, nvmlEventData_st *, unsigned int);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_st *, nvmlEventData_st *, unsigned int);
nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *);
nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int, nvmlExcludedDeviceInfo_st *);
nvmlReturn_t nvmlGetVgpuCompatibility(nvmlVgpuMetadata_st *, nvmlVgpuPgpuMetadata_st *, nvmlVgpuPgpuCompatibility_st *);
nvmlReturn_t nvmlGetVgpuDriverCapabilities(int, unsigned int *);
nvmlReturn_t nvmlGetVgpuVersion(nvmlVgpuVersion_st *, nvmlVgpuVersion_st *);
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *);
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_st *, unsigned int, nvmlGpmSample_st *);
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_st *, nvmlGpmSupport_t *);
nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_st *, unsigned int *);
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_st **);
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_st *);
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_st *, nvmlGpmSample_st *);
nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_st *, unsigned int);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_st *, unsigned int, nvmlComputeInstance_st **);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_st *, unsigned int, const nvmlComputeInstancePlacement_st *, nvmlComputeInstance_st **);
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_st *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_st *, unsigned int, nvmlComputeInstance_st **);
nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_st *, unsigned int, nvmlComputeInstancePlacement_st *, unsigned int *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_st *, unsigned int, unsigned int, nvmlComputeInstanceProfileInfo_st *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_st *, unsigned int, unsigned int, nvmlComputeInstanceProfileInfo_v2_st *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_st *, unsigned int, nvmlComputeInstance_st **, unsigned int *);
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_st *, nvmlGpuInstanceInfo_st *);
nvmlReturn_t nvmlInit();
nvmlReturn_t nvmlInitWithFlags(unsigned int);
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlSetVgpuVersion(nvmlVgpuVersion_st *);
nvmlReturn_t nvmlShutdown();
nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_st *);
nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *);
nvmlReturn_t nvmlSystemGetConfComputeKeyRotationThresholdInfo(nvmlConfComputeGetKeyRotationThresholdInfo_st *);
nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_v1_t *);
nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_st *);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *);
nvmlReturn_t nvmlSystemGetDriverVersion(char *, unsigned int);
nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *, nvmlHwbcEntry_st *);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *, unsigned int);
nvmlReturn_t nvmlSystemGetNvlinkBwMode(unsigned int *);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int, char *, unsigned int);
nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int, unsigned int *, nvmlDevice_st **);
nvmlReturn_t nvmlSystemSetConfComputeGpusReadyState(unsigned int);
nvmlReturn_t nvmlSystemSetConfComputeKeyRotationThresholdInfo(nvmlConfComputeSetKeyRotationThresholdInfo_st *);
nvmlReturn_t nvmlSystemSetNvlinkBwMode(unsigned int);
nvmlReturn_t nvmlUnitGetCount(unsigned int *);
nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_st *, unsigned int *, nvmlDevice_st **);
nvmlReturn_t nvmlUnitGetFanSpeedInfo(nvmlUnit_st *, nvmlUnitFanSpeeds_st *);
nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int, nvmlUnit_st **);
nvmlReturn_t nvmlUnitGetLedState(nvmlUnit_st *, nvmlLedState_st *);
nvmlReturn_t nvmlUnitGetPsuInfo(nvmlUnit_st *, nvmlPSUInfo_st *);
nvmlReturn_t nvmlUnitGetTemperature(nvmlUnit_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlUnitGetUnitInfo(nvmlUnit_st *, nvmlUnitInfo_st *);
nvmlReturn_t nvmlUnitSetLedState(nvmlUnit_st *, int);
nvmlReturn_t nvmlVgpuInstanceClearAccountingPids(unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetAccountingMode(unsigned int, int *);
nvmlReturn_t nvmlVgpuInstanceGetAccountingPids(unsigned int, unsigned int *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetAccountingStats(unsigned int, unsigned int, nvmlAccountingStats_st *);
nvmlReturn_t nvmlVgpuInstanceGetEccMode(unsigned int, int *);
nvmlReturn_t nvmlVgpuInstanceGetEncoderCapacity(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetEncoderSessions(unsigned int, unsigned int *, nvmlEncoderSessionInfo_st *);
nvmlReturn_t nvmlVgpuInstanceGetEncoderStats(unsigned int, unsigned int *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetFBCSessions(unsigned int, unsigned int *, nvmlFBCSessionInfo_st *);
nvmlReturn_t nvmlVgpuInstanceGetFBCStats(unsigned int, nvmlFBCStats_st *);
nvmlReturn_t nvmlVgpuInstanceGetFbUsage(unsigned int, unsigned long long *);
nvmlReturn_t nvmlVgpuInstanceGetFrameRateLimit(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetGpuInstanceId(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetGpuPciId(unsigned int, char *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo(unsigned int, nvmlVgpuLicenseInfo_st *);
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo_v2(unsigned int, nvmlVgpuLicenseInfo_st *);
nvmlReturn_t nvmlVgpuInstanceGetLicenseStatus(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetMdevUUID(unsigned int, char *, unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetMetadata(unsigned int, nvmlVgpuMetadata_st *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetPlacementId(unsigned int, nvmlVgpuPlacementId_v1_t *);
nvmlReturn_t nvmlVgpuInstanceGetType(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetUUID(unsigned int, char *, unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetVmDriverVersion(unsigned int, char *, unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetVmID(unsigned int, char *, unsigned int, int *);
nvmlReturn_t nvmlVgpuInstanceSetEncoderCapacity(unsigned int, unsigned int);
nvmlReturn_t nvmlVgpuTypeGetCapabilities(unsigned int, int, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetClass(unsigned int, char *, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetDeviceID(unsigned int, unsigned long long *, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetFbReservation(unsigned int, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetFrameRateLimit(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetFramebufferSize(unsigned int, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetGpuInstanceProfileId(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetGspHeapSize(unsigned int, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetLicense(unsigned int, char *, unsigned int);
nvmlReturn_t nvmlVgpuTypeGetMaxInstances(nvmlDevice_st *, unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerVm(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetName(unsigned int, char *, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetNumDisplayHeads(unsigned int, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetResolution(unsigned int, unsigned int, unsigned int *, unsigned int *);
nvmlReturn_t nvmlInternalGetExportTable(const void **, const void *);
}
