// SPDX-License-Identifier: Apache-2.0
// The JIT linker's calls. What was handed in comes out again as one image: the device links it when a module is made of
// it.
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "guest-driver-shim/libcuda/channel/image.h"
#include "guest-driver-shim/libcuda/driver/driver.h"
#include "guest-driver-shim/libcuda/module/device_runtime.h"
#include "guest-driver-shim/libcuda/module/jit_options.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace {

using namespace vgpud::cuda;

struct Linker {
  explicit Linker(JitOptions told) : log(std::move(told)) {}

  Mutex mutex{lock_rank::kLinker};
  std::vector<std::vector<std::byte>> inputs GUARDED_BY(mutex);  // PTX texts and fatbins
  std::vector<std::byte> image GUARDED_BY(mutex);                // what they became
  bool wants_device_runtime GUARDED_BY(mutex) = false;
  bool complete GUARDED_BY(mutex) = false;
  JitOptions log GUARDED_BY(mutex);      // valid until cuLinkDestroy, as CUDA wants it
  std::string errors GUARDED_BY(mutex);  // a line for each input that was refused
};

HandleTable<CUlinkState, Linker>& Linkers() {
  static auto* const table = new HandleTable<CUlinkState, Linker>(0x11);
  return *table;
}

// An input that is not taken: the program hears at once which, and why.
CUresult Refuse(Linker& linker, const char* name, const char* why, CUresult error) REQUIRES(linker.mutex) {
  linker.errors += std::string(name != nullptr ? name : "input") + ": " + why + "\n";
  linker.log.Answer("", linker.errors, 0);
  return error;
}

CUresult Create(unsigned count, int* options, void** values, CUlinkState* out) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions log;
  if (const CUresult error = JitOptions::Read(count, options, values, &log)) return error;
  *out = Linkers().Add(std::make_shared<Linker>(std::move(log)));
  return CUDA_SUCCESS;
}

CUresult Add(CUlinkState handle, int type, std::span<const char> data, const char* name) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto linker = Linkers().Find(handle);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data.empty() || data.size() > PTRDIFF_MAX || type < 0 || type >= CU_JIT_NUM_INPUT_TYPES)
    return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(linker->mutex);
  if (type == CU_JIT_INPUT_LIBRARY && IsDeviceRuntime(data, name != nullptr ? name : "")) {
    if (linker->complete) return CUDA_ERROR_INVALID_VALUE;
    linker->wants_device_runtime = true;
    return CUDA_SUCCESS;
  }
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
    return Refuse(*linker, name, "machine code and objects cannot be linked; this device takes PTX and fat binaries",
                  CUDA_ERROR_NOT_SUPPORTED);
  }
  if (linker->complete) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = std::as_bytes(data);
  std::vector<std::byte> input(bytes.begin(), bytes.end());
  input.push_back(std::byte{0});
  std::vector<ImageExtent> images;
  if (!FindImages(input.data(), ReadOwnMemory, &images)) {
    if (type == CU_JIT_INPUT_PTX) return Refuse(*linker, name, "this is no PTX", CUDA_ERROR_INVALID_PTX);
    return Refuse(*linker, name, "this is no fat binary, or its headers are damaged", CUDA_ERROR_INVALID_IMAGE);
  }
  for (const ImageExtent& extent : images) {
    const auto* start = static_cast<const std::byte*>(extent.start);
    linker->inputs.emplace_back(start, start + extent.bytes);
  }
  return CUDA_SUCCESS;
}

void Join(Linker& linker) REQUIRES(linker.mutex) {
  std::vector<std::vector<std::byte>> inputs = linker.inputs;
  if (linker.wants_device_runtime) {
    const auto text = std::as_bytes(std::span(DeviceRuntimePtx()));
    inputs.emplace_back(text.begin(), text.end());
  }
  const uint32_t most_registers = linker.log.most_registers();
  linker.image =
      inputs.size() == 1 && most_registers == 0 ? std::move(inputs.front()) : JoinImages(inputs, most_registers);
  linker.image.push_back(std::byte{0});  // PTX text is looked for up to there
}

// The device links when it loads: what it can't link is an error of the linker. Whether there is room for it is not.
CUresult Try(Linker& linker, Device* device) REQUIRES(linker.mutex) {
  std::shared_ptr<Library> library;
  std::string why;
  uint64_t number;
  CUresult error = Library::Make(linker.image.data(), true, 0, &library);
  if (error == CUDA_SUCCESS) error = library->ModuleOn(device, &number, &why);
  if (error == CUDA_SUCCESS || error == CUDA_ERROR_OUT_OF_MEMORY) return CUDA_SUCCESS;
  linker.log.Answer("", linker.errors + why, 0);
  return error;
}

CUresult AddFile(CUlinkState handle, int type, const char* path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
  return Add(handle, type, data, path);
}

}  // namespace

CU_API(cuLinkCreate)(unsigned count, int* options, void** values, CUlinkState* out) {
  return Create(count, options, values, out);
}
CU_API(cuLinkCreate_v2)(unsigned count, int* options, void** values, CUlinkState* out) {
  return Create(count, options, values, out);
}
CU_API(cuLinkAddData)
(CUlinkState state, int type, void* data, size_t bytes, const char* name, unsigned, int*, void**) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(state, type, {static_cast<const char*>(data), bytes}, name);
}
CU_API(cuLinkAddData_v2)
(CUlinkState state, int type, void* data, size_t bytes, const char* name, unsigned, int*, void**) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(state, type, {static_cast<const char*>(data), bytes}, name);
}
CU_API(cuLinkAddFile)(CUlinkState state, int type, const char* path, unsigned, int*, void**) {
  return AddFile(state, type, path);
}
CU_API(cuLinkAddFile_v2)(CUlinkState state, int type, const char* path, unsigned, int*, void**) {
  return AddFile(state, type, path);
}

CU_API(cuLinkComplete)(CUlinkState handle, void** image, size_t* bytes) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto linker = Linkers().Find(handle);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(linker->mutex);
  if (linker->inputs.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (!linker->complete) {
    Join(*linker);
    if (const CUresult error = Try(*linker, current.device)) return error;
  }
  linker->complete = true;
  linker->log.Answer("", linker->errors, 0);
  *image = linker->image.data();
  if (bytes != nullptr) *bytes = linker->image.size();
  return CUDA_SUCCESS;
}

CU_API(cuLinkDestroy)(CUlinkState handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Linkers().Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
