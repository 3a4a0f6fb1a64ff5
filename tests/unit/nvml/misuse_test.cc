// SPDX-License-Identifier: Apache-2.0
// What is asked wrongly, too early, too late, or of a host that does not answer; and that every name is there to be
// asked.
#include <dlfcn.h>

#include "tests/unit/nvml/nvml_fixture.h"

namespace vgpud {
namespace {

// Each call of a device, with room for whatever it answers.
struct DeviceCall {
  const char* name;
  nvmlReturn_t (*call)(nvmlDevice_t device, void* room);
};
#define OF_DEVICE(name, ...)                                                                                          \
  {                                                                                                                   \
#name, [](nvmlDevice_t device, [[maybe_unused]] void* room) -> nvmlReturn_t { return name(device, __VA_ARGS__); } \
  }
template <class T>
T* As(void* room) {
  return static_cast<T*>(room);
}
const DeviceCall kDeviceCalls[] = {
    OF_DEVICE(nvmlDeviceGetIndex, As<unsigned>(room)),
    OF_DEVICE(nvmlDeviceGetName, As<char>(room), 96),
    OF_DEVICE(nvmlDeviceGetUUID, As<char>(room), 96),
    OF_DEVICE(nvmlDeviceGetMinorNumber, As<unsigned>(room)),
    OF_DEVICE(nvmlDeviceGetPciInfo, As<nvmlPciInfo_t>(room)),
    OF_DEVICE(nvmlDeviceGetPciInfo_v2, As<nvmlPciInfo_t>(room)),
    OF_DEVICE(nvmlDeviceGetPciInfo_v3, As<nvmlPciInfo_t>(room)),
    OF_DEVICE(nvmlDeviceGetPciInfoExt, As<nvmlPciInfoExt_v1_t>(room)),
    OF_DEVICE(nvmlDeviceGetCudaComputeCapability, As<int>(room), As<int>(room)),
    OF_DEVICE(nvmlDeviceGetMemoryInfo, As<nvmlMemory_t>(room)),
    OF_DEVICE(nvmlDeviceGetMemoryInfo_v2, As<nvmlMemory_v2_t>(room)),
    OF_DEVICE(nvmlDeviceGetUtilizationRates, As<nvmlUtilization_t>(room)),
    OF_DEVICE(nvmlDeviceGetComputeRunningProcesses, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetComputeRunningProcesses_v2, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetComputeRunningProcesses_v3, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetGraphicsRunningProcesses, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetGraphicsRunningProcesses_v2, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetGraphicsRunningProcesses_v3, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetMPSComputeRunningProcesses, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetMPSComputeRunningProcesses_v2, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetMPSComputeRunningProcesses_v3, As<unsigned>(room), nullptr),
    OF_DEVICE(nvmlDeviceGetProcessUtilization, nullptr, As<unsigned>(room), 0),
    OF_DEVICE(nvmlDeviceGetProcessesUtilizationInfo, As<nvmlProcessesUtilizationInfo_v1_t>(room)),
    OF_DEVICE(nvmlDeviceGetBrand, As<int>(room)),
    OF_DEVICE(nvmlDeviceGetArchitecture, As<unsigned>(room)),
    OF_DEVICE(nvmlDeviceGetVirtualizationMode, As<int>(room)),
    OF_DEVICE(nvmlDeviceGetComputeMode, As<int>(room)),
    OF_DEVICE(nvmlDeviceGetDisplayMode, As<int>(room)),
    OF_DEVICE(nvmlDeviceGetDisplayActive, As<int>(room)),
    OF_DEVICE(nvmlDeviceIsMigDeviceHandle, As<unsigned>(room)),
    OF_DEVICE(nvmlDeviceGetSupportedEventTypes, As<unsigned long long>(room)),
    OF_DEVICE(nvmlDeviceGetP2PStatus, device, NVML_P2P_CAPS_INDEX_READ, As<int>(room)),
    OF_DEVICE(nvmlDeviceGetFieldValues, 1, As<nvmlFieldValue_t>(room)),
};

TEST_F(NvmlCalls, WrongHandlesAndNoRoomAreInvalidArguments) {
  alignas(8) char room[256] = {};
  for (const DeviceCall& row : kDeviceCalls) {
    for (const uintptr_t wrong :
         {uintptr_t{0}, uintptr_t{1}, reinterpret_cast<uintptr_t>(room), reinterpret_cast<uintptr_t>(device) + 1})
      EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, row.call(reinterpret_cast<nvmlDevice_t>(wrong), room))
          << row.name << " " << wrong;
    EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, row.call(device, nullptr)) << row.name;
  }
}

TEST_F(NvmlCalls, BeforeInitAndAfterShutdownNothingIsAnswered) {
  ASSERT_EQ(NVML_SUCCESS, nvmlShutdown());
  alignas(8) char room[256] = {};
  char text[96];
  unsigned count = 0;
  for (const DeviceCall& row : kDeviceCalls) EXPECT_EQ(NVML_ERROR_UNINITIALIZED, row.call(device, room)) << row.name;
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlUnitGetCount(&count));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetHandleByIndex_v2(0, &device));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetHandleByUUID(kUuid, &device));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetHandleByPciBusId_v2("0:0:0", &device));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlSystemGetDriverVersion(text, sizeof text));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlSystemGetProcessName(1, text, sizeof text));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetTemperature(device, 0, &count)) << "one that nobody has written";
  nvmlEventSet_t set = nullptr;
  nvmlEventData_t data{};
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlEventSetCreate(&set));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlEventSetWait_v2(set, &data, 0));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlEventSetFree(set));
  EXPECT_EQ(NVML_ERROR_UNINITIALIZED, nvmlShutdown());
  int version = 0;
  EXPECT_EQ(NVML_SUCCESS, nvmlSystemGetCudaDriverVersion_v2(&version)) << "needs no nvmlInit";
  ASSERT_EQ(NVML_SUCCESS, nvmlInit_v2());
}

TEST_F(NvmlCalls, InitsAreCounted) {
  ASSERT_EQ(NVML_SUCCESS, nvmlInit());
  ASSERT_EQ(NVML_SUCCESS, nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH));
  EXPECT_EQ(NVML_ERROR_INVALID_ARGUMENT, nvmlInitWithFlags(4));
  EXPECT_EQ(NVML_SUCCESS, nvmlShutdown());
  EXPECT_EQ(NVML_SUCCESS, nvmlShutdown());
  unsigned count = 0;
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetCount_v2(&count));
}

TEST_F(NvmlCalls, WhatIsNotKnownIsNotSupported) {
  unsigned number = 77;
  EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTemperature(device, 0, &number));
  EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetPowerUsage(device, &number));
  EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetFanSpeed(device, &number));
  EXPECT_EQ(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetClockInfo(device, 0, &number));
  EXPECT_EQ(77u, number) << "and nothing is written";
}

TEST_F(NvmlCalls, AHostThatIsGoneOrRefusesIsAnError) {
  nvmlMemory_t memory{};
  const std::pair<int, nvmlReturn_t> rows[] = {{EIO, NVML_ERROR_GPU_IS_LOST},
                                               {ENOSYS, NVML_ERROR_LIB_RM_VERSION_MISMATCH},
                                               {EACCES, NVML_ERROR_NO_PERMISSION},
                                               {ETIMEDOUT, NVML_ERROR_TIMEOUT},
                                               {ENOMEM, NVML_ERROR_MEMORY}};
  for (const auto& [error, wanted] : rows) {
    vf.Refuse(error);
    EXPECT_EQ(wanted, nvmlDeviceGetMemoryInfo(device, &memory)) << error;
  }
  char text[96];
  EXPECT_EQ(NVML_SUCCESS, nvmlDeviceGetUUID(device, text, sizeof text)) << "what never changes is known still";
}

TEST_F(NvmlCalls, EveryNameIsExported) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nullptr, library);
  FILE* const names = fopen(EXPORTS, "r");
  ASSERT_NE(nullptr, names) << EXPORTS;
  char name[128];
  int count = 0;
  while (fscanf(names, "%127s", name) == 1) {
    EXPECT_NE(nullptr, dlsym(library, name)) << name;
    ++count;
  }
  fclose(names);
  EXPECT_GT(count, 300);
}

}  // namespace
}  // namespace vgpud
