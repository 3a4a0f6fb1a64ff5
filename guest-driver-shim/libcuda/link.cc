// SPDX-License-Identifier: Apache-2.0
// The JIT linker's calls. What was handed in comes out again as one image: the device links it when a module is made of
// it.
#include <cstring>
#include <fstream>
#include <iterator>

#include "guest-driver-shim/libcuda/channel/image.h"
#include "guest-driver-shim/libcuda/driver/driver.h"

namespace {

using namespace vgpud::cuda;

struct Linker {
  std::mutex mutex;
  std::vector<std::vector<std::byte>> inputs;  // PTX texts and fatbins
  std::vector<std::byte> image;                // what they became
  bool complete = false;
  // Where the program wants what the linker has to say.
  std::vector<std::pair<int, void**>> answers;
};

HandleTable<CUlinkState, Linker>& Linkers() {
  static auto* const table = new HandleTable<CUlinkState, Linker>(0x11);
  return *table;
}

// Nothing was said and no time was spent: the sizes of the logs and the time are the option values themselves.
void AnswerOptions(const Linker& linker) {
  for (const auto& [option, value] : linker.answers) {
    if (option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER) {
      if (*value != nullptr) *static_cast<char*>(*value) = '\0';
    } else {
      *value = nullptr;
    }
  }
}

CUresult Create(unsigned count, int* options, void** values, CUlinkState* out) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || (count != 0 && (options == nullptr || values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  auto linker = std::make_shared<Linker>();
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_WALL_TIME:
      case CU_JIT_INFO_LOG_BUFFER:
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      case CU_JIT_ERROR_LOG_BUFFER:
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        linker->answers.emplace_back(options[i], &values[i]);
        break;
      default:
        if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  *out = Linkers().Add(std::move(linker));
  return CUDA_SUCCESS;
}

CUresult Add(CUlinkState handle, int type, std::span<const char> data) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto linker = Linkers().Find(handle);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data.empty() || type < 0 || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) return CUDA_ERROR_NOT_SUPPORTED;
  std::lock_guard lock(linker->mutex);
  if (linker->complete) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = std::as_bytes(data);
  std::vector<std::byte> input(bytes.begin(), bytes.end());
  input.push_back(std::byte{0});
  std::vector<ImageExtent> images;
  if (!FindImages(input.data(), ReadOwnMemory, &images)) {
    return type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
  }
  for (const ImageExtent& extent : images) {
    const auto* start = static_cast<const std::byte*>(extent.start);
    linker->inputs.emplace_back(start, start + extent.bytes);
  }
  return CUDA_SUCCESS;
}

CUresult AddFile(CUlinkState handle, int type, const char* path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
  return Add(handle, type, data);
}

}  // namespace

CU_API(cuLinkCreate)(unsigned count, int* options, void** values, CUlinkState* out) {
  return Create(count, options, values, out);
}
CU_API(cuLinkCreate_v2)(unsigned count, int* options, void** values, CUlinkState* out) {
  return Create(count, options, values, out);
}
CU_API(cuLinkAddData)
(CUlinkState state, int type, void* data, size_t bytes, const char*, unsigned, int*, void**) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(state, type, {static_cast<const char*>(data), bytes});
}
CU_API(cuLinkAddData_v2)
(CUlinkState state, int type, void* data, size_t bytes, const char*, unsigned, int*, void**) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(state, type, {static_cast<const char*>(data), bytes});
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
  std::lock_guard lock(linker->mutex);
  if (linker->inputs.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (!linker->complete) {
    linker->image = linker->inputs.size() == 1 ? linker->inputs.front() : JoinImages(linker->inputs);
    linker->image.push_back(std::byte{0});  // PTX text is looked for up to there
  }
  linker->complete = true;
  AnswerOptions(*linker);
  *image = linker->image.data();
  if (bytes != nullptr) *bytes = linker->image.size();
  return CUDA_SUCCESS;
}

CU_API(cuLinkDestroy)(CUlinkState handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Linkers().Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
