// SPDX-License-Identifier: Apache-2.0
// Limits of contexts and attributes of streams: remembered, and told again; the executor is told those it keeps.
#include <cstring>
#include <tuple>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace {

using namespace vgpud::cuda;

constexpr size_t kAttributeBytes = sizeof CUlaunchAttribute_st::value;
using AttributeKey = std::tuple<Device*, uint32_t, int>;

Mutex attribute_mutex{lock_rank::kAttributes};
std::map<AttributeKey, std::array<unsigned char, kAttributeBytes>>& Attributes() REQUIRES(attribute_mutex) {
  static auto* const attributes = new std::map<AttributeKey, std::array<unsigned char, kAttributeBytes>>;
  return *attributes;
}

bool IsStreamAttribute(int id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return true;
    default:
      return false;
  }
}

CUresult Access(DefaultStream mode, CUstream stream, int id, void* out, const void* in) {
  const Current current = ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (!IsStreamAttribute(id) || (out == nullptr && in == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  MutexLock lock(attribute_mutex);
  auto& value = Attributes()[{current.device, number, id}];
  if (in != nullptr) memcpy(value.data(), in, value.size());
  if (out != nullptr) memcpy(out, value.data(), value.size());
  return CUDA_SUCCESS;
}

CUresult GetAttribute(DefaultStream mode, CUstream stream, int id, CUlaunchAttributeValue_union* out) {
  return Access(mode, stream, id, out, nullptr);
}
CUresult SetAttribute(DefaultStream mode, CUstream stream, int id, const CUlaunchAttributeValue_union* in) {
  return Access(mode, stream, id, nullptr, in);
}
CUresult CopyAttributes(DefaultStream mode, CUstream to, CUstream from) {
  for (int id = 0; id < CU_LAUNCH_ATTRIBUTE_MAX; ++id) {
    unsigned char value[kAttributeBytes];
    if (!IsStreamAttribute(id)) continue;
    if (const CUresult error = Access(mode, from, id, value, nullptr)) return error;
    if (const CUresult error = Access(mode, to, id, nullptr, value)) return error;
  }
  return CUDA_SUCCESS;
}

bool IsBankSize(int config) {
  return config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
}

}  // namespace

CU_TWINS(cuStreamGetAttribute, cuStreamGetAttribute_ptsz, GetAttribute,
         (CUstream stream, int id, CUlaunchAttributeValue_union* value), (stream, id, value))
CU_TWINS(cuStreamSetAttribute, cuStreamSetAttribute_ptsz, SetAttribute,
         (CUstream stream, int id, const CUlaunchAttributeValue_union* value), (stream, id, value))
CU_TWINS(cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz, CopyAttributes, (CUstream to, CUstream from), (to, from))

CU_API(cuCtxGetLimit)(size_t* value, int limit) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (value == nullptr || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  // No context here shares its device with a graphics one ("CIG"); cuBLAS 13 asks, and takes a refusal for a device
  // without multiprocessors.
  *value = current.context->limit[static_cast<size_t>(limit)].load();
  return CUDA_SUCCESS;
}

CU_API(cuCtxSetLimit)(int limit, size_t value) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  // There is no such cache to set aside (CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE is 0), but none of it is
  // fine.
  if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE && value == 0) return CUDA_SUCCESS;
  if (limit >= CU_LIMIT_PERSISTING_L2_CACHE_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  // cuda.h: it has to be set before the first kernel that prints is launched.
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && current.channel->HasPrinted()) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
    Command command;
    command.op = VGPU_OP_LIMIT_SET;
    command.args[0] = limit == CU_LIMIT_PRINTF_FIFO_SIZE ? VGPU_LIMIT_PRINTF_FIFO : VGPU_LIMIT_MALLOC_HEAP;
    command.args[1] = value;
    if (const CUresult error = current.channel->Call(command).status) return error;
  }
  current.context->limit[static_cast<size_t>(limit)].store(value);
  return CUDA_SUCCESS;
}

// Banks of shared memory have the one size that they have; setting another is a hint, as on devices of today.
CU_API(cuCtxGetSharedMemConfig)(int* config) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}
CU_API(cuCtxSetSharedMemConfig)(int config) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return IsBankSize(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CU_API(cuFuncSetSharedMemConfig)(CUfunction handle, int config) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (FindKernel(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return IsBankSize(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Nothing persists in the cache that this device does not have.
CU_API(cuCtxResetPersistingL2Cache)() { return CurrentContext().error; }
