// SPDX-License-Identifier: Apache-2.0
// nvml_probe look|use|agree: what NVML says of the first virtual function, as lines of "name value"; with `use` before
// and while this process has a CUDA context with memory; `agree`: the bus ids of all. Ends with 1 where NVML and CUDA
// do not say the same.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"
#include "guest-driver-shim/libnvidia-ml/generated/nvml_api.h"

namespace {

bool failed = false;

void Expect(bool condition, const char* what) {
  if (condition) return;
  printf("WRONG %s\n", what);
  failed = true;
}

#define NVML(call) Expect((call) == NVML_SUCCESS, #call)
#define CUDA(call) Expect((call) == CUDA_SUCCESS, #call)

constexpr size_t kBytes = size_t{48} << 20;

nvmlMemory_t Look(nvmlDevice_t device) {
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = {}, uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
  nvmlMemory_t memory{};
  nvmlUtilization_t use{};
  nvmlPciInfo_t pci{};
  int major = 0, minor = 0;
  NVML(nvmlDeviceGetName(device, name, sizeof name));
  NVML(nvmlDeviceGetUUID(device, uuid, sizeof uuid));
  NVML(nvmlDeviceGetMemoryInfo(device, &memory));
  NVML(nvmlDeviceGetUtilizationRates(device, &use));
  NVML(nvmlDeviceGetPciInfo_v3(device, &pci));
  NVML(nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
  printf("name %s\nuuid %s\nmemory %llu %llu %llu\nuse %u\npci %s\ncapability %d.%d\n", name, uuid, memory.total,
         memory.used, memory.free, use.gpu, pci.busId, major, minor);
  return memory;
}

std::vector<nvmlProcessInfo_v2_t> Processes(nvmlDevice_t device) {
  std::vector<nvmlProcessInfo_v2_t> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  NVML(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()));
  processes.resize(count);
  for (const auto& process : processes) printf("process %u %llu\n", process.pid, process.usedGpuMemory);
  return processes;
}

void Compare(nvmlDevice_t device, CUdevice ordinal = 0) {
  CUuuid_st uuid{};
  size_t total = 0;
  char bus[32] = {}, text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {}, name[96] = {}, cuda_name[96] = {};
  int version = 0, nvml_version = 0;
  CUDA(cuDeviceGetUuid_v2(&uuid, ordinal));
  CUDA(cuDeviceTotalMem_v2(&total, ordinal));
  CUDA(cuDeviceGetPCIBusId(bus, sizeof bus, ordinal));
  CUDA(cuDeviceGetName(cuda_name, sizeof cuda_name, ordinal));
  CUDA(cuDriverGetVersion(&version));
  NVML(nvmlSystemGetCudaDriverVersion_v2(&nvml_version));
  Expect(version == nvml_version, "CUDA's version is NVML's");
  NVML(nvmlDeviceGetName(device, name, sizeof name));
  Expect(strcmp(name, cuda_name) == 0, "CUDA's name is NVML's");
  NVML(nvmlDeviceGetUUID(device, text, sizeof text));
  std::string hex;
  for (const char* at = text + 4; *at != '\0'; ++at)
    if (*at != '-') hex += *at;
  std::string wanted;
  for (const auto byte : uuid.bytes) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    wanted += digits;
  }
  Expect(hex == wanted, "CUDA's UUID is NVML's");
  nvmlMemory_t memory{};
  NVML(nvmlDeviceGetMemoryInfo(device, &memory));
  Expect(memory.total == total, "CUDA's memory is NVML's");
  nvmlDevice_t same = nullptr;
  NVML(nvmlDeviceGetHandleByPciBusId_v2(bus, &same));
  Expect(same == device, "the device of CUDA's bus id");
}

// All devices are the same for both, and each is found by its bus id.
void Agree(unsigned count) {
  CUDA(cuInit(0));
  int cuda_count = 0;
  CUDA(cuDeviceGetCount(&cuda_count));
  Expect(static_cast<unsigned>(cuda_count) == count, "CUDA has as many devices as NVML");
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t device = nullptr;
    nvmlPciInfo_t pci{};
    char bus[32] = {};
    CUdevice found = -1;
    NVML(nvmlDeviceGetHandleByIndex_v2(i, &device));
    NVML(nvmlDeviceGetPciInfo_v3(device, &pci));
    Compare(device, static_cast<CUdevice>(i));
    CUDA(cuDeviceGetPCIBusId(bus, sizeof bus, static_cast<CUdevice>(i)));
    CUDA(cuDeviceGetByPCIBusId(&found, bus));
    Expect(found == static_cast<CUdevice>(i), "CUDA finds a device by its bus id");
    CUDA(cuDeviceGetByPCIBusId(&found, pci.busId));
    Expect(found == static_cast<CUdevice>(i), "and by what NVML says of it");
    printf("bus%u %s\n", i, bus);
  }
}

void Use(nvmlDevice_t device, const nvmlMemory_t& before) {
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  CUDA(cuInit(0));
  CUDA(cuCtxCreate_v2(&context, 0, 0));
  CUDA(cuMemAlloc_v2(&at, kBytes));
  const nvmlMemory_t during = Look(device);
  Expect(during.used >= before.used + kBytes, "what this process took is in use");
  bool listed = false;
  for (const auto& process : Processes(device))
    listed |= process.pid == static_cast<unsigned>(getpid()) && process.usedGpuMemory >= kBytes;
  Expect(listed, "this process is listed, with its memory");
  Compare(device);
  CUDA(cuMemFree_v2(at));
  // A guest's driver asks for these figures a hundred times a second at most.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  nvmlMemory_t after = during;
  while (after.used + kBytes > during.used && std::chrono::steady_clock::now() < patience)
    NVML(nvmlDeviceGetMemoryInfo(device, &after));
  Expect(after.used + kBytes <= during.used, "what it gave back is free");
  CUDA(cuCtxDestroy_v2(context));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (nvmlInit_v2() != NVML_SUCCESS) {
    puts("WRONG nvmlInit");
    return 1;
  }
  unsigned count = 0;
  nvmlDevice_t device = nullptr;
  NVML(nvmlDeviceGetCount_v2(&count));
  printf("devices %u\n", count);
  NVML(nvmlDeviceGetHandleByIndex_v2(0, &device));
  const nvmlMemory_t before = Look(device);
  Processes(device);
  if (strcmp(argv[1], "use") == 0) Use(device, before);
  if (strcmp(argv[1], "agree") == 0) Agree(count);
  NVML(nvmlShutdown());
  puts(failed ? "FAILED" : "PASSED");
  return failed ? 1 : 0;
}
