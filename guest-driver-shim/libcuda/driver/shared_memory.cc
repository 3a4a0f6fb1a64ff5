// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGrain = 512;
// A buffer that is cut into small pieces, and what is small. It is as large as the pages in which accesses of kernels
// are checked.
constexpr uint64_t kSlab = uint64_t{2} << 20;
constexpr uint64_t kSmall = 256 * 1024;

uint64_t Up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

struct Slab {
  Device* device = nullptr;
  Transport::Buffer buffer;
  std::map<uint64_t, uint64_t> free;  // bytes by offset
  uint64_t used = 0;
};
struct Piece {
  Device* device = nullptr;
  Transport::Buffer buffer;
  uint64_t slab = 0;  // its address, 0: a buffer of its own
  uint64_t bytes = 0;
};
struct State {
  Mutex mutex{lock_rank::kShared};
  std::map<uint64_t, Slab> slabs GUARDED_BY(mutex);    // by address
  std::map<uint64_t, Piece> pieces GUARDED_BY(mutex);  // by address
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// Takes `bytes` out of the slab; nullopt: there are not so many in one piece.
std::optional<uint64_t> Cut(Slab& slab, uint64_t bytes, uint64_t alignment) {
  for (auto it = slab.free.begin(); it != slab.free.end(); ++it) {
    const auto [begin, free] = *it;
    const uint64_t at = Up(begin, alignment);
    if (at - begin > free || bytes > free - (at - begin)) continue;
    slab.free.erase(it);
    if (at != begin) slab.free[begin] = at - begin;
    if (const uint64_t end = at + bytes; end != begin + free) slab.free[end] = begin + free - end;
    slab.used += bytes;
    return at;
  }
  return std::nullopt;
}

void PutBack(Slab& slab, uint64_t at, uint64_t bytes) {
  slab.used -= bytes;
  auto it = slab.free.emplace(at, bytes).first;
  if (const auto next = std::next(it); next != slab.free.end() && at + bytes == next->first) {
    it->second += next->second;
    slab.free.erase(next);
  }
  if (it == slab.free.begin()) return;
  const auto before = std::prev(it);
  if (before->first + before->second != it->first) return;
  before->second += it->second;
  slab.free.erase(it);
}

// Moves the mapping of a buffer to where kernels have it.
bool MoveTo(Transport::Buffer* buffer, uint64_t address) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const place =
      mmap(wanted, buffer->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (place == MAP_FAILED) return false;
  if (place != wanted) {
    munmap(place, buffer->bytes);
    return false;
  }
  if (mremap(buffer->address, buffer->bytes, buffer->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) == MAP_FAILED) {
    munmap(place, buffer->bytes);
    return false;
  }
  buffer->address = wanted;
  return true;
}

// A buffer that lies here where kernels have it.
CUresult MakeBuffer(Device* device, uint64_t bytes, Transport::Buffer* out) {
  Channel& channel = *device->channel;
  const int refused = channel.transport().AllocBuffer(bytes, out);
  if (refused == EPIPE || refused == ECONNRESET) return channel.Broken();
  if (refused != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Command command;
  command.op = VGPU_OP_BUF_ADDRESS;
  command.args[0] = out->id;
  const Completion done = channel.Call(command);
  CUresult status = done.status;
  if (status == CUDA_SUCCESS && (done.value[1] != bytes || !MoveTo(out, done.value[0])))
    status = CUDA_ERROR_NOT_SUPPORTED;
  if (status != CUDA_SUCCESS) channel.transport().FreeBuffer(*out);
  return status;
}

uint64_t AddressOf(const Transport::Buffer& buffer) { return reinterpret_cast<uint64_t>(buffer.address); }

// A small piece.
CUresult AllocSmall(State& state, Device* device, uint64_t bytes, uint64_t* address) REQUIRES(state.mutex) {
  const uint64_t alignment = bytes < kPage ? kGrain : kPage;
  const uint64_t need = Up(bytes, kGrain);
  const auto take = [&](uint64_t begin, Slab& slab) REQUIRES(state.mutex) {
    const auto at = Cut(slab, need, alignment);
    if (!at) return false;
    *address = begin + *at;
    state.pieces[*address] = {device, slab.buffer, begin, need};
    memset(reinterpret_cast<void*>(*address), 0, need);
    return true;
  };
  for (auto& [begin, slab] : state.slabs)
    if (slab.device == device && take(begin, slab)) return CUDA_SUCCESS;
  Slab fresh{device, {}, {{0, kSlab}}, 0};
  if (const CUresult error = MakeBuffer(device, kSlab, &fresh.buffer)) return error;
  const uint64_t begin = AddressOf(fresh.buffer);
  take(begin, state.slabs.emplace(begin, std::move(fresh)).first->second);
  return CUDA_SUCCESS;
}

// A buffer of its own.
CUresult AllocWhole(State& state, Device* device, uint64_t bytes, Transport::Buffer* out) REQUIRES(state.mutex) {
  if (const CUresult error = MakeBuffer(device, bytes, out)) return error;
  state.pieces[AddressOf(*out)] = {device, *out, 0, bytes};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult AllocShared(Device* device, uint64_t bytes, uint64_t* address) {
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  if (bytes == 0 || bytes > ~uint64_t{0} - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  State& state = TheState();
  MutexLock lock(state.mutex);
  if (bytes <= kSmall) {
    // Where there is no room for a whole slab there may be some for this.
    const CUresult status = AllocSmall(state, device, bytes, address);
    if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
  }
  Transport::Buffer buffer;
  const CUresult status = AllocWhole(state, device, Up(bytes, kPage), &buffer);
  if (status == CUDA_SUCCESS) *address = AddressOf(buffer);
  return status;
}

CUresult AllocSharedBuffer(Device* device, uint64_t bytes, Transport::Buffer* out) {
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  State& state = TheState();
  MutexLock lock(state.mutex);
  return AllocWhole(state, device, bytes, out);
}

void FreeShared(Device* device, uint64_t address) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.pieces.find(address);
  if (it == state.pieces.end() || it->second.device != device) return;
  const Piece piece = it->second;
  state.pieces.erase(it);
  if (piece.slab == 0) {
    device->channel->transport().FreeBuffer(piece.buffer);
    return;
  }
  const auto slab = state.slabs.find(piece.slab);
  PutBack(slab->second, address - piece.slab, piece.bytes);
  // The last one of a device stays: the next piece comes soon.
  bool others = false;
  for (const auto& [begin, other] : state.slabs) others |= begin != piece.slab && other.device == device;
  if (slab->second.used != 0 || !others) return;
  device->channel->transport().FreeBuffer(piece.buffer);
  state.slabs.erase(slab);
}

SharedSpan FindShared(uint64_t address, uint64_t bytes) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  auto it = state.pieces.upper_bound(address);
  if (it == state.pieces.begin()) return {};
  --it;
  const uint64_t offset = address - it->first;
  const Piece& piece = it->second;
  if (offset >= piece.bytes || bytes > piece.bytes - offset) return {};
  return {piece.device, piece.buffer.id, address - AddressOf(piece.buffer)};
}

}  // namespace vgpud::cuda
