// SPDX-License-Identifier: Apache-2.0
// Contexts: the primary one of each device, thin further ones that share its channel, and each thread's stack.
#include "guest-driver-shim/libcuda/api/array.h"
#include "guest-driver-shim/libcuda/api/event.h"
#include "guest-driver-shim/libcuda/api/pool.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/driver/mapped_memory.h"
#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace {

using namespace vgpud::cuda;

constexpr unsigned kApiVersion = 13000;
constexpr unsigned kKnownContextFlags = CU_CTX_FLAGS_MASK;

Device* FindDevice(CUdevice ordinal, CUresult* error) {
  Device* device = nullptr;
  *error = Driver::Get().OpenDevice(ordinal, &device);
  return device;
}

// Everything that belongs to `context` and still exists goes away.
void Empty(Context& context) {
  context.storage.Clear(context.handle);
  DropStreamsOf(context.handle);
  DropEventsOf(context.handle);
  DropModulesOf(context.handle);
  DropTexturesOf(&context);
  DropArraysOf(&context);
  DropManagedOf(&context);
  FreeAllOf(context.device, &context);
}

// The primary context is used by nobody (or is to be reset): the executor forgets everything, its errors too. Until it
// is retained again its handle is that of a destroyed context, as with NVIDIA's driver.
void ResetPrimary(Device* device) {
  device->primary_active.store(false, std::memory_order_release);
  device->primary->storage.Clear(device->primary_handle);
  bool alone;
  {
    MutexLock lock(device->mutex);
    alone = device->other_contexts == 0;
  }
  if (!alone) {
    Empty(*device->primary);
    return;
  }
  Command command;
  command.op = VGPU_OP_CONTEXT_RESET;
  device->channel->Call(command);
  device->channel->TakePostedError();
  device->channel->ForgetPrinted();
  device->epoch.fetch_add(1);
  DropStreamsOf(device->primary_handle);
  DropEventsOf(device->primary_handle);
  DropModulesOf(device->primary_handle);
  DropTexturesOf(device->primary.get());
  DropArraysOf(device->primary.get());
  DropManagedOf(device->primary.get());
  ForgetMappedOf(device);
  MutexLock lock(device->mutex);
  device->allocations.clear();
  device->globals.clear();
}

CUresult Release(CUdevice ordinal) {
  CUresult error;
  Device* device = FindDevice(ordinal, &error);
  if (device == nullptr) return error;
  {
    MutexLock lock(device->mutex);
    if (device->primary_users == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_users > 0) return CUDA_SUCCESS;
  }
  ResetPrimary(device);
  return CUDA_SUCCESS;
}

CUresult Reset(CUdevice ordinal) {
  CUresult error;
  Device* device = FindDevice(ordinal, &error);
  if (device == nullptr) return error;
  // What runs still prints.
  Command command;
  command.op = VGPU_OP_CONTEXT_SYNC;
  device->channel->Call(command);
  {
    MutexLock lock(device->mutex);
    device->primary_users = 0;
  }
  ResetPrimary(device);
  return CUDA_SUCCESS;
}

CUresult SetFlags(CUdevice ordinal, unsigned flags) {
  CUresult error;
  Device* device = FindDevice(ordinal, &error);
  if (device == nullptr) return error;
  if ((flags & ~kKnownContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(device->mutex);
  device->primary_flags = flags;
  return CUDA_SUCCESS;
}

// The executor tells who asks which processes have a context from whether they ask more than what the GPU is. A
// question that costs nothing, and is answered when this returns.
void SayThatThereIsAContext(Device* device) {
  Command command;
  command.op = VGPU_OP_MEM_INFO;
  device->channel->Call(command);
}

CUresult Create(CUcontext* out, unsigned flags, CUdevice ordinal) {
  static std::atomic<uint64_t> next_id{1000};
  CUresult error;
  Device* device = FindDevice(ordinal, &error);
  if (device == nullptr) return error;
  if (out == nullptr || (flags & ~kKnownContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto context = std::make_shared<Context>();
  context->device = device;
  context->id = next_id.fetch_add(1);
  context->flags = flags;
  Context* raw = context.get();
  *out = raw->handle = Driver::Get().contexts().Add(std::move(context));
  ContextStack().push_back(*out);
  SayThatThereIsAContext(device);
  MutexLock lock(device->mutex);
  ++device->other_contexts;
  return CUDA_SUCCESS;
}

CUresult Destroy(CUcontext handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto context = Driver::Get().contexts().Find(handle);
  if (context == nullptr || context->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
  Command command;
  command.op = VGPU_OP_CONTEXT_SYNC;
  context->device->channel->Call(command);
  Empty(*context);
  Driver::Get().contexts().Remove(handle);
  auto& stack = ContextStack();
  if (!stack.empty() && stack.back() == handle) stack.pop_back();
  MutexLock lock(context->device->mutex);
  --context->device->other_contexts;
  return CUDA_SUCCESS;
}

CUresult Attach(CUcontext* out, unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(current.device->mutex);
  ++current.context->attached;
  *out = current.context->handle;
  return CUDA_SUCCESS;
}

CUresult Detach(CUcontext handle) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (handle != current.context->handle) return CUDA_ERROR_INVALID_CONTEXT;
  {
    MutexLock lock(current.device->mutex);
    if (current.context->attached > 0) {
      --current.context->attached;
      return CUDA_SUCCESS;
    }
  }
  return Destroy(handle);
}

CUresult Push(CUcontext handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (Driver::Get().contexts().Find(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStack().push_back(handle);
  return CUDA_SUCCESS;
}

CUresult Pop(CUcontext* out) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  auto& stack = ContextStack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult Synchronize(const Current& current) {
  if (current.error != CUDA_SUCCESS) return current.error;
  if (const CUresult error = RefuseWhileAnyCaptures(current)) return error;
  Command command;
  command.op = VGPU_OP_CONTEXT_SYNC;
  const uint64_t before = current.channel->AllWork();
  const CUresult status = current.channel->Call(command).status;
  if (status == CUDA_SUCCESS) current.channel->LegacyStreamWasDone(before);
  TrimPools(current.device);
  return status != CUDA_SUCCESS ? status : FetchManaged(current, true);
}

// The context `handle`, or the current one when it is null.
std::shared_ptr<Context> Named(CUcontext handle, CUresult* error) {
  if (handle == nullptr) {
    Current current = CurrentContext(false);
    *error = current.error;
    return current.error == CUDA_SUCCESS ? current.context : nullptr;
  }
  *error = Driver::Get().Ready();
  if (*error != CUDA_SUCCESS) return nullptr;
  auto context = Driver::Get().contexts().Find(handle);
  if (context == nullptr) *error = CUDA_ERROR_INVALID_CONTEXT;
  return context;
}

}  // namespace

CU_API(cuDevicePrimaryCtxRetain)(CUcontext* out, CUdevice ordinal) {
  CUresult error;
  Device* device = FindDevice(ordinal, &error);
  if (device == nullptr) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool first;
  {
    MutexLock lock(device->mutex);
    first = device->primary_users++ == 0;
    device->primary_active.store(true, std::memory_order_release);
    *out = device->primary_handle;
  }
  if (first) SayThatThereIsAContext(device);
  return CUDA_SUCCESS;
}
CU_API(cuDevicePrimaryCtxRelease)(CUdevice ordinal) { return Release(ordinal); }
CU_API(cuDevicePrimaryCtxRelease_v2)(CUdevice ordinal) { return Release(ordinal); }
CU_API(cuDevicePrimaryCtxReset)(CUdevice ordinal) { return Reset(ordinal); }
CU_API(cuDevicePrimaryCtxReset_v2)(CUdevice ordinal) { return Reset(ordinal); }
CU_API(cuDevicePrimaryCtxSetFlags)(CUdevice ordinal, unsigned flags) { return SetFlags(ordinal, flags); }
CU_API(cuDevicePrimaryCtxSetFlags_v2)(CUdevice ordinal, unsigned flags) { return SetFlags(ordinal, flags); }

CU_API(cuDevicePrimaryCtxGetState)(CUdevice ordinal, unsigned* flags, int* active) {
  CUresult error;
  Device* device = FindDevice(ordinal, &error);
  if (device == nullptr) return error;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(device->mutex);
  *flags = device->primary_flags;
  *active = device->primary_users > 0;
  return CUDA_SUCCESS;
}

CU_API(cuCtxCreate)(CUcontext* out, unsigned flags, CUdevice ordinal) { return Create(out, flags, ordinal); }
CU_API(cuCtxCreate_v3)(CUcontext* out, CUexecAffinityParam_st*, int affinities, unsigned flags, CUdevice ordinal) {
  if (affinities < 0) return CUDA_ERROR_INVALID_VALUE;
  return affinities == 0 ? Create(out, flags, ordinal) : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}
CU_API(cuCtxCreate_v2)(CUcontext* out, unsigned flags, CUdevice ordinal) { return Create(out, flags, ordinal); }
CU_API(cuCtxCreate_v4)(CUcontext* out, CUctxCreateParams_st* parameters, unsigned flags, CUdevice ordinal) {
  const bool plain =
      parameters == nullptr || (parameters->numExecAffinityParams == 0 && parameters->cigParams == nullptr);
  return plain ? Create(out, flags, ordinal) : CUDA_ERROR_NOT_SUPPORTED;
}
CU_API(cuCtxAttach)(CUcontext* out, unsigned flags) { return Attach(out, flags); }
CU_API(cuCtxDetach)(CUcontext context) { return Detach(context); }
CU_API(cuCtxDestroy)(CUcontext context) { return Destroy(context); }
CU_API(cuCtxDestroy_v2)(CUcontext context) { return Destroy(context); }
CU_API(cuCtxPushCurrent)(CUcontext context) { return Push(context); }
CU_API(cuCtxPushCurrent_v2)(CUcontext context) { return Push(context); }
CU_API(cuCtxPopCurrent)(CUcontext* out) { return Pop(out); }
CU_API(cuCtxPopCurrent_v2)(CUcontext* out) { return Pop(out); }

CU_API(cuCtxSetCurrent)(CUcontext handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  auto& stack = ContextStack();
  if (handle == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  if (Driver::Get().contexts().Find(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(handle);
  } else {
    stack.back() = handle;
  }
  return CUDA_SUCCESS;
}

CU_API(cuCtxGetCurrent)(CUcontext* out) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = ContextStack().empty() ? nullptr : ContextStack().back();
  return CUDA_SUCCESS;
}

CU_API(cuCtxGetDevice_v2)(CUdevice* out, CUcontext handle) {
  CUresult error;
  const auto context = Named(handle, &error);
  if (context == nullptr) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = context->device->ordinal;
  return CUDA_SUCCESS;
}
CU_API(cuCtxGetDevice)(CUdevice* out) { return cuCtxGetDevice_v2(out, nullptr); }

CU_API(cuCtxGetApiVersion)(CUcontext handle, unsigned* version) {
  CUresult error;
  if (Named(handle, &error) == nullptr) return error;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kApiVersion;
  return CUDA_SUCCESS;
}

CU_API(cuCtxGetId)(CUcontext handle, unsigned long long* id) {
  CUresult error;
  const auto context = Named(handle, &error);
  if (context == nullptr) return error;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

CU_API(cuCtxGetFlags)(unsigned* flags) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(current.device->mutex);
  *flags = current.context->is_primary ? current.device->primary_flags : current.context->flags;
  return CUDA_SUCCESS;
}

CU_API(cuCtxSetFlags)(unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if ((flags & ~kKnownContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(current.device->mutex);
  (current.context->is_primary ? current.device->primary_flags : current.context->flags) = flags;
  return CUDA_SUCCESS;
}

CU_API(cuCtxSynchronize)() { return Synchronize(CurrentContext()); }
CU_API(cuCtxSynchronize_v2)(CUcontext handle) {
  CUresult error;
  const auto context = Named(handle, &error);
  if (context == nullptr) return error;
  Current current;
  current.context = context;
  current.device = context->device;
  current.channel = context->device->channel.get();
  current.error = current.channel->Sticky();
  return Synchronize(current);
}

// A device is no peer of itself, and no two of these reach each other's memory.
CU_API(cuCtxEnablePeerAccess)(CUcontext peer, unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto other = Driver::Get().contexts().Find(peer);
  if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return other->device == current.device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}
CU_API(cuCtxDisablePeerAccess)(CUcontext peer) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const bool known = Driver::Get().contexts().Find(peer) != nullptr;
  return known ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_ERROR_INVALID_CONTEXT;
}

CU_API(cuCtxGetCacheConfig)(int* config) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}
CU_API(cuCtxSetCacheConfig)(int config) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
                                                                                   : CUDA_SUCCESS;
}
