// SPDX-License-Identifier: Apache-2.0
// Every call that is answered: what it says, and what it says to wrong arguments of its own.
#include <vector>

#include "tests/unit/nvml/nvml_fixture.h"

namespace vgpud {
namespace {

TEST_F(NvmlCalls, VersionsAndTexts) {
  char text[80];
  EXPECT_EQ(NVML_SUCCESS, nvmlSystemGetDriverVersion(text, sizeof text));
  EXPECT_STREQ(VGPU_VERSION, text);
  EXPECT_EQ(NVML_SUCCESS, nvmlSystemGetNVMLVersion(text, sizeof text));
  EXPECT_STREQ("12." VGPU_VERSION, text);
  EXPECT_EQ(NVML_SUCCESS, nvmlSystemGetNVMLVersion(text, sizeof "12." VGPU_VERSION));
  for (const auto call : {nvmlSystemGetDriverVersion, nvmlSystemGetNVMLVersion}) {
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(nullptr, 80));
    EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, call(text, 5));
    EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, call(text, 0));
  }
  for (const auto call : {nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2}) {
    int version = 0;
    EXPECT_EQ(NVML_SUCCESS, call(&version));
    EXPECT_EQ(13000, version);
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(nullptr));
  }
  EXPECT_STREQ("success", nvmlErrorString(NVML_SUCCESS));
  EXPECT_STREQ("not supported", nvmlErrorString(NVML_ERROR_NOT_SUPPORTED));
  EXPECT_STREQ("unknown", nvmlErrorString(NVML_ERROR_UNKNOWN));
  EXPECT_STREQ("no such error code", nvmlErrorString(-1));
  EXPECT_STREQ("no such error code", nvmlErrorString(500));
}

TEST_F(NvmlCalls, ProcessesHaveNames) {
  char text[256], little[4];
  EXPECT_EQ(NVML_SUCCESS, nvmlSystemGetProcessName(static_cast<unsigned>(getpid()), text, sizeof text));
  EXPECT_NE(nullptr, strstr(text, "nvml_calls_test")) << text;
  EXPECT_EQ(NVML_SUCCESS, nvmlSystemGetProcessName(static_cast<unsigned>(getpid()), little, sizeof little));
  EXPECT_EQ(std::string(text).substr(0, 3), little) << "as much as fits";
  EXPECT_EQ(NVML_ERROR_NOT_FOUND, nvmlSystemGetProcessName(~0u, text, sizeof text));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlSystemGetProcessName(1, nullptr, sizeof text));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlSystemGetProcessName(1, text, 0));
}

TEST_F(NvmlCalls, TheDeviceIsFoundInEachWay) {
  unsigned count = 0, index = 7;
  nvmlDevice_t found = nullptr;
  for (const auto call : {nvmlDeviceGetCount, nvmlDeviceGetCount_v2, nvmlUnitGetCount}) {
    EXPECT_EQ(NVML_SUCCESS, call(&count));
    EXPECT_EQ(call == nvmlUnitGetCount ? 0u : 1u, count);
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(nullptr));
  }
  for (const auto call : {nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2}) {
    EXPECT_EQ(NVML_SUCCESS, call(0, &found));
    EXPECT_EQ(device, found);
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(1, &found));
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(~0u, &found));
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(0, nullptr));
  }
  found = nullptr;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetHandleByUUID(kUuid, &found));
  EXPECT_EQ(device, found);
  EXPECT_EQ(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID("GPU-a0", &found));
  EXPECT_EQ(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID("", &found));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByUUID(nullptr, &found));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByUUID(kUuid, nullptr));
  for (const auto call : {nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2}) {
    for (const char* text : {"843e:30:12.0", "0000843E:30:12.0", "843e:30:12"}) {
      found = nullptr;
      EXPECT_EQ(NVML_SUCCESS, call(text, &found)) << text;
      EXPECT_EQ(device, found);
    }
    for (const char* text : {"843e:30:13.0", "843f:30:12.0", "0000:00:00.0", "30:12"})
      EXPECT_EQ(NVML_ERROR_NOT_FOUND, call(text, &found)) << text;
    for (const char* text : {"", "gpu", "0000", "0000:00:00x", "0000:"})
      EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(text, &found)) << text;
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(nullptr, &found));
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call("843e:30:12.0", nullptr));
  }
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetIndex(device, &index));
  EXPECT_EQ(0u, index);
}

TEST_F(NvmlCalls, WhatNeverChangesOfADevice) {
  char text[96];
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetName(device, text, sizeof text));
  EXPECT_STREQ("vgpud soft GPU", text);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetUUID(device, text, sizeof text));
  EXPECT_STREQ(kUuid, text);
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetUUID(device, text, sizeof kUuid - 1));
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetName(device, text, 3));
  int major = 0, minor = 0;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
  EXPECT_EQ(12, major);
  EXPECT_EQ(1, minor);
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetCudaComputeCapability(device, nullptr, &minor));
  unsigned number = 0;
  EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMinorNumber(device, &number)) << "no /dev/vgpuN without a VM";
}

TEST_F(NvmlCalls, WithoutABusThePciAddressIsMadeOfTheUuid) {
  for (const auto call : {nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo_v3}) {
    nvmlPciInfo_t info{};
    memset(&info, 0xff, sizeof info);
    EXPECT_EQ(NVML_SUCCESS, call(device, &info));
    EXPECT_STREQ("0000843E:30:12.0", info.busId);
    EXPECT_STREQ("843E:30:12.0", info.busIdLegacy);
    EXPECT_EQ(0x843eu, info.domain);
    EXPECT_EQ(0x30u, info.bus);
    EXPECT_EQ(0x12u, info.device);
    EXPECT_EQ(0u, info.pciSubSystemId);
    EXPECT_EQ(0x10f01af4u, info.pciDeviceId);
  }
  nvmlPciInfoExt_v1_t info{};
  for (const unsigned version : {0u, 1u, nvmlPciInfoExt_v1 + 1, 2u << 24 | 64u}) {
    info.version = version;
    EXPECT_EQ(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetPciInfoExt(device, &info)) << version;
  }
  info.version = nvmlPciInfoExt_v1;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetPciInfoExt(device, &info));
  EXPECT_EQ(nvmlPciInfoExt_v1, info.version);
  EXPECT_EQ(3u, info.baseClass);
  EXPECT_EQ(2u, info.subClass);
  EXPECT_STREQ("0000843E:30:12.0", info.busId);
}

TEST_F(NvmlCalls, MemoryIsTheQuotaAndItsUse) {
  nvmlMemory_t memory{};
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetMemoryInfo(device, &memory));
  EXPECT_EQ(kQuota, memory.total);
  EXPECT_EQ(kUsed, memory.used);
  EXPECT_EQ(kQuota - kUsed, memory.free);
  nvmlMemory_v2_t second{};
  second.reserved = 5;
  for (const unsigned version : {0u, 2u, nvmlMemory_v2 - 1, 1u << 24 | 40u}) {
    second.version = version;
    EXPECT_EQ(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetMemoryInfo_v2(device, &second)) << version;
  }
  second.version = nvmlMemory_v2;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetMemoryInfo_v2(device, &second));
  EXPECT_EQ(kQuota, second.total);
  EXPECT_EQ(kUsed, second.used);
  EXPECT_EQ(kQuota - kUsed, second.free);
  EXPECT_EQ(0u, second.reserved);
  vf.Change([](vgpu_status& status) { status.vram_used_bytes = kQuota + 1; });
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetMemoryInfo(device, &memory));
  EXPECT_EQ(kQuota, memory.used);
  EXPECT_EQ(0u, memory.free);
}

TEST_F(NvmlCalls, UtilizationIsThatOfTheVf) {
  nvmlUtilization_t use{7, 7};
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetUtilizationRates(device, &use));
  EXPECT_EQ(42u, use.gpu);
  EXPECT_EQ(0u, use.memory);
  vf.Change([](vgpu_status& status) { status.gpu_percent = 1'000; });
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetUtilizationRates(device, &use));
  EXPECT_EQ(100u, use.gpu);
}

template <class Info>
void CheckProcesses(nvmlDevice_t device, nvmlReturn_t (*call)(nvmlDevice_t, unsigned*, Info*)) {
  unsigned count = 0;
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, call(device, &count, nullptr)) << "asks how many";
  EXPECT_EQ(2u, count);
  Info infos[3];
  memset(infos, 0x55, sizeof infos);
  count = 1;
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, call(device, &count, infos));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(0x55555555u, infos[0].pid) << "nothing written";
  EXPECT_EQ(NVML_SUCCESS, call(device, &count, infos));
  EXPECT_EQ(100u, infos[0].pid);
  EXPECT_EQ(16u, infos[0].usedGpuMemory) << "of both its channels";
  EXPECT_EQ(200u, infos[1].pid);
  EXPECT_EQ(7u, infos[1].usedGpuMemory);
  EXPECT_EQ(0x55555555u, infos[2].pid);
  if constexpr (sizeof(Info) > sizeof(nvmlProcessInfo_v1_t)) {
    EXPECT_EQ(~0u, infos[0].gpuInstanceId);
    EXPECT_EQ(~0u, infos[1].computeInstanceId);
  }
  count = 3;
  EXPECT_EQ(NVML_SUCCESS, call(device, &count, infos));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(device, nullptr, infos));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(device, &count, nullptr)) << "room for some, and no room";
}

TEST_F(NvmlCalls, ItsOwnProcessesAreListed) {
  CheckProcesses(device, nvmlDeviceGetComputeRunningProcesses);
  CheckProcesses(device, nvmlDeviceGetComputeRunningProcesses_v2);
  CheckProcesses(device, nvmlDeviceGetComputeRunningProcesses_v3);
  vf.Change([](vgpu_status& status) { status.channel[0].id = 0; });
  unsigned count = 0;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr)) << "none";
  EXPECT_EQ(0u, count);
}

template <class Info>
void CheckNoProcesses(nvmlDevice_t device, nvmlReturn_t (*call)(nvmlDevice_t, unsigned*, Info*)) {
  unsigned count = 9;
  EXPECT_EQ(NVML_SUCCESS, call(device, &count, nullptr));
  EXPECT_EQ(0u, count);
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(device, nullptr, nullptr));
}

TEST_F(NvmlCalls, NobodyDrawsOrSharesAContext) {
  CheckNoProcesses(device, nvmlDeviceGetGraphicsRunningProcesses);
  CheckNoProcesses(device, nvmlDeviceGetGraphicsRunningProcesses_v2);
  CheckNoProcesses(device, nvmlDeviceGetGraphicsRunningProcesses_v3);
  CheckNoProcesses(device, nvmlDeviceGetMPSComputeRunningProcesses);
  CheckNoProcesses(device, nvmlDeviceGetMPSComputeRunningProcesses_v2);
  CheckNoProcesses(device, nvmlDeviceGetMPSComputeRunningProcesses_v3);
}

// Looks once, then again when so much time has passed on the host's clock.
void Pass(FakeVf& vf, nvmlDevice_t device, uint64_t ns, uint64_t first_ns, uint64_t second_ns) {
  nvmlUtilization_t use{};
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetUtilizationRates(device, &use));
  vf.Change([=](vgpu_status& status) {
    status.now_ns += ns;
    status.channel[0].gpu_ns += first_ns;
    status.channel[1].gpu_ns += second_ns;
  });
}

TEST_F(NvmlCalls, HowBusyEachProcessWas) {
  nvmlProcessUtilizationSample_t samples[3];
  unsigned count = 3;
  EXPECT_EQ(NVML_ERROR_NOT_FOUND, nvmlDeviceGetProcessUtilization(device, samples, &count, ~0ull));
  EXPECT_EQ(0u, count);
  Pass(vf, device, 1'000'000'000, 250'000'000, 600'000'000);
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetProcessUtilization(device, nullptr, &count, 0));
  EXPECT_EQ(2u, count);
  count = 1;
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetProcessUtilization(device, samples, &count, 0));
  memset(samples, 0x55, sizeof samples);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetProcessUtilization(device, samples, &count, 0));
  ASSERT_EQ(2u, count);
  EXPECT_EQ(100u, samples[0].pid);
  EXPECT_EQ(25u, samples[0].smUtil);
  EXPECT_EQ(200u, samples[1].pid);
  EXPECT_EQ(60u, samples[1].smUtil);
  EXPECT_EQ(0u, samples[1].memUtil | samples[1].encUtil | samples[1].decUtil);
  EXPECT_NE(0u, samples[0].timeStamp);
  EXPECT_EQ(0x55555555u, samples[2].pid);
  EXPECT_EQ(NVML_ERROR_NOT_FOUND,
            nvmlDeviceGetProcessUtilization(device, samples, &count, samples[0].timeStamp + 1'000'000'000));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetProcessUtilization(device, samples, nullptr, 0));
}

TEST_F(NvmlCalls, TheSameInANewerStruct) {
  nvmlProcessUtilizationInfo_v1_t infos[2];
  nvmlProcessesUtilizationInfo_v1_t all{};
  all.procUtilArray = infos;
  all.processSamplesCount = 2;
  for (const unsigned version : {0u, 1u, nvmlProcessesUtilizationInfo_v1 ^ 8u}) {
    all.version = version;
    EXPECT_EQ(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetProcessesUtilizationInfo(device, &all)) << version;
  }
  all.version = nvmlProcessesUtilizationInfo_v1;
  all.lastSeenTimeStamp = ~0ull;
  EXPECT_EQ(NVML_ERROR_NOT_FOUND, nvmlDeviceGetProcessesUtilizationInfo(device, &all));
  EXPECT_EQ(0u, all.processSamplesCount);
  Pass(vf, device, 500'000'000, 500'000'000, 5'000'000);
  all.lastSeenTimeStamp = 0;
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetProcessesUtilizationInfo(device, &all));
  EXPECT_EQ(2u, all.processSamplesCount);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetProcessesUtilizationInfo(device, &all));
  EXPECT_EQ(100u, infos[0].pid);
  EXPECT_EQ(100u, infos[0].smUtil);
  EXPECT_EQ(1u, infos[1].smUtil);
  EXPECT_EQ(0u, infos[1].jpgUtil | infos[1].ofaUtil);
  all.procUtilArray = nullptr;
  EXPECT_EQ(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetProcessesUtilizationInfo(device, &all));
}

TEST_F(NvmlCalls, SetsOfEventsHaveNone) {
  nvmlEventSet_t set = nullptr, other = nullptr;
  nvmlEventData_t data{};
  ASSERT_EQ(NVML_SUCCESS, nvmlEventSetCreate(&set));
  ASSERT_EQ(NVML_SUCCESS, nvmlEventSetCreate(&other));
  EXPECT_NE(set, other);
  EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceRegisterEvents(device, 1, set));
  for (const auto call : {nvmlEventSetWait, nvmlEventSetWait_v2}) {
    EXPECT_EQ(NVML_ERROR_TIMEOUT, call(set, &data, 1));
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(set, nullptr, 1));
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, call(nullptr, &data, 1));
  }
  EXPECT_EQ(NVML_SUCCESS, nvmlEventSetFree(set));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetFree(set));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetWait_v2(set, &data, 1));
  EXPECT_EQ(NVML_SUCCESS, nvmlEventSetFree(other));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetFree(nullptr));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetCreate(nullptr));
}

TEST_F(NvmlCalls, WhatIsTrueOfEveryVf) {
  int word = 77;
  unsigned number = 77;
  unsigned long long events = 77;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetBrand(device, &word));
  EXPECT_EQ(NVML_BRAND_UNKNOWN, word);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetVirtualizationMode(device, &word));
  EXPECT_EQ(NVML_GPU_VIRTUALIZATION_MODE_VGPU, word);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetComputeMode(device, &word));
  EXPECT_EQ(NVML_COMPUTEMODE_DEFAULT, word);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetDisplayMode(device, &word));
  EXPECT_EQ(NVML_FEATURE_DISABLED, word);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetDisplayActive(device, &word));
  EXPECT_EQ(NVML_FEATURE_DISABLED, word);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetArchitecture(device, &number));
  EXPECT_EQ(NVML_DEVICE_ARCH_UNKNOWN, number);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceIsMigDeviceHandle(device, &number));
  EXPECT_EQ(0u, number);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetSupportedEventTypes(device, &events));
  EXPECT_EQ(0u, events);
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetP2PStatus(device, device, NVML_P2P_CAPS_INDEX_READ, &word));
  EXPECT_EQ(NVML_P2P_STATUS_OK, word);
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetP2PStatus(device, nullptr, NVML_P2P_CAPS_INDEX_READ, &word));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetP2PStatus(device, device, NVML_P2P_CAPS_INDEX_UNKNOWN, &word));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetP2PStatus(device, device, -1, &word));
  nvmlFieldValue_t values[2]{};
  values[0].fieldId = 83;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetFieldValues(device, 2, values));
  for (const auto& value : values) EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, value.nvmlReturn);
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetFieldValues(device, 0, values));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetFieldValues(device, -1, values));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetFieldValues(device, 2, nullptr));
}

}  // namespace
}  // namespace vgpud
