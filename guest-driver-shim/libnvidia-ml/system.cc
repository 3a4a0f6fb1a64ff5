// SPDX-License-Identifier: Apache-2.0
// Beginning and end, versions, texts, and what is there of a system beside its GPUs: nothing.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "guest-driver-shim/libcuda/driver/version.h"
#include "guest-driver-shim/libnvidia-ml/library.h"

namespace {

using vgpud::nvml::CopyText;
using vgpud::nvml::Library;

struct ErrorRow {
  int code;
  const char* text;
};
constexpr ErrorRow kErrors[] = {
#include "guest-driver-shim/libnvidia-ml/generated/error_table.inc"
};

// There is no driver of NVIDIA's: what stands in for one is this project.
constexpr char kDriverVersion[] = VGPU_VERSION;
// The interface that the names are of, then ours.
constexpr char kNvmlVersion[] = "12." VGPU_VERSION;

nvmlReturn_t Text(const char* text, char* to, unsigned room) {
  if (const nvmlReturn_t error = Library::Get().Ready()) return error;
  return to == nullptr ? NVML_ERROR_INVALID_ARGUMENT : CopyText(text, to, room);
}

nvmlReturn_t CudaVersion(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = vgpud::cuda::DriverVersion();  // what libcuda.so.1 beside us says
  return NVML_SUCCESS;
}

// The first word of a file below /proc/PID, as far as it fits; false: there is none.
bool FirstWord(unsigned pid, const char* file, char* to, unsigned room) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  FILE* const stream = fopen(path.c_str(), "re");
  if (stream == nullptr) return false;
  const size_t n = fread(to, 1, room - 1, stream);
  fclose(stream);
  to[n] = '\0';
  to[strcspn(to, "\n")] = '\0';
  return to[0] != '\0';
}

}  // namespace

NVML_API(nvmlInit)() { return Library::Get().Init(false); }
NVML_API(nvmlInit_v2)() { return Library::Get().Init(false); }
NVML_API(nvmlInitWithFlags)(unsigned flags) {
  if ((flags & ~(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH)) != 0) return NVML_ERROR_INVALID_ARGUMENT;
  return Library::Get().Init((flags & NVML_INIT_FLAG_NO_GPUS) != 0);
}
NVML_API(nvmlShutdown)() { return Library::Get().Shutdown(); }

NVML_TEXT(nvmlErrorString)(int code) {
  const auto* const row =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorRow& r) { return r.code == code; });
  return row != std::end(kErrors) ? row->text : "no such error code";
}

NVML_API(nvmlSystemGetDriverVersion)(char* to, unsigned room) { return Text(kDriverVersion, to, room); }
NVML_API(nvmlSystemGetNVMLVersion)(char* to, unsigned room) { return Text(kNvmlVersion, to, room); }
// These two work without nvmlInit.
NVML_API(nvmlSystemGetCudaDriverVersion)(int* version) { return CudaVersion(version); }
NVML_API(nvmlSystemGetCudaDriverVersion_v2)(int* version) { return CudaVersion(version); }

NVML_API(nvmlSystemGetProcessName)(unsigned pid, char* to, unsigned room) {
  if (const nvmlReturn_t error = Library::Get().Ready()) return error;
  if (to == nullptr || room == 0) return NVML_ERROR_INVALID_ARGUMENT;
  // Kernel threads and what has ended have no command line.
  return FirstWord(pid, "cmdline", to, room) || FirstWord(pid, "comm", to, room) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

NVML_API(nvmlUnitGetCount)(unsigned* count) {
  if (const nvmlReturn_t error = Library::Get().Ready()) return error;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}
