// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/imported_memory.h"

#include <cerrno>
#include <map>

namespace vgpud::cuda {
namespace {

struct Described {
  uint64_t bytes = 0;
  int fd = -1;
  uint64_t offset = 0;
};
struct Imported {
  Device* device = nullptr;
  Transport::Buffer buffer;
};
struct State {
  Mutex mutex{lock_rank::kImported};
  std::map<uint64_t, Described> described GUARDED_BY(mutex);  // by address
  std::map<uint64_t, Imported> imported GUARDED_BY(mutex);    // by address
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

}  // namespace

CUresult ImportMemory(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.described.find(address);
  if (it == state.described.end() || it->second.bytes != bytes || state.imported.contains(address))
    return CUDA_ERROR_NOT_SUPPORTED;
  Channel& channel = *device->channel;
  Transport::Buffer buffer;
  const int refused = channel.transport().ImportBuffer(it->second.fd, it->second.offset, bytes, &buffer);
  state.described.erase(it);
  if (refused == EPIPE || refused == ECONNRESET) return channel.Broken();
  if (refused != 0) return refused == ENOMEM || refused == ENOSPC ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
  Command command;
  command.op = VGPU_OP_BUF_ADDRESS;
  command.args[0] = buffer.id;
  const Completion done = channel.Call(command);
  if (done.status != CUDA_SUCCESS) {
    channel.transport().FreeBuffer(buffer);
    return done.status;
  }
  state.imported[address] = {device, buffer};
  *out = done.value[0];
  return CUDA_SUCCESS;
}

void ForgetImported(uint64_t address) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.imported.find(address);
  if (it == state.imported.end()) return;
  it->second.device->channel->transport().FreeBuffer(it->second.buffer);
  state.imported.erase(it);
}

}  // namespace vgpud::cuda

extern "C" __attribute__((visibility("default"))) CUresult vgpuDescribeHostMemory(void* address, size_t bytes, int fd,
                                                                                  uint64_t offset) {
  using namespace vgpud::cuda;
  return Enter([=]() -> CUresult {
    if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    State& state = TheState();
    MutexLock lock(state.mutex);
    const auto at = reinterpret_cast<uint64_t>(address);
    if (fd < 0) {
      state.described.erase(at);
    } else {
      state.described[at] = {bytes, fd, offset};
    }
    return CUDA_SUCCESS;
  });
}
