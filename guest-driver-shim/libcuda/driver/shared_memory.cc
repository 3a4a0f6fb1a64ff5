// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>

// ThreadSanitizer's, in a program that was built with it.
extern "C" void __tsan_init() __attribute__((weak, visibility("default")));

namespace vgpud::cuda {

// It keeps what it knows of all memory at fixed addresses, and the program has what is left.
bool AddressesAreFree() { return __tsan_init == nullptr; }

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
  uint64_t begin = 0;  // of the buffer, for kernels
  uint64_t bytes = 0;
  enum class Kind { kWhole, kOfSlab, kApart, kPinned } kind = Kind::kWhole;
  bool reserved = false;  // nothing else is at `begin` here, where the program has none of it
};
struct State {
  Mutex mutex{lock_rank::kShared};
  std::map<uint64_t, Slab> slabs GUARDED_BY(mutex);    // by address
  std::map<uint64_t, Piece> pieces GUARDED_BY(mutex);  // by the address of kernels
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

// Takes addresses that are nobody else's in this process.
bool Reserve(uint64_t address, uint64_t bytes) {
  if (!AddressesAreFree()) return false;
  void* const wanted = reinterpret_cast<void*>(address);
  void* const place =
      mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (place == wanted) return true;
  if (place != MAP_FAILED) munmap(place, bytes);
  return false;
}

// Moves the mapping of a buffer to where kernels have it.
bool MoveTo(Transport::Buffer* buffer, uint64_t address) {
  if (!Reserve(address, buffer->bytes)) return false;
  void* const wanted = reinterpret_cast<void*>(address);
  if (mremap(buffer->address, buffer->bytes, buffer->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) == MAP_FAILED) {
    munmap(wanted, buffer->bytes);
    return false;
  }
  buffer->address = wanted;
  return true;
}

// Where kernels have a buffer.
CUresult AskAddress(Channel& channel, const Transport::Buffer& buffer, uint64_t* address) {
  Command command;
  command.op = VGPU_OP_BUF_ADDRESS;
  command.args[0] = buffer.id;
  const Completion done = channel.Call(command);
  *address = done.value[0];
  return done.status == CUDA_SUCCESS && done.value[1] != buffer.bytes ? CUDA_ERROR_NOT_SUPPORTED : done.status;
}

// What a refused buffer is in CUDA's words.
CUresult Refused(Channel& channel, int error) {
  const auto is = [error](std::initializer_list<int> any) { return std::ranges::find(any, error) != any.end(); };
  if (error == 0) return CUDA_SUCCESS;
  if (is({EPIPE, ECONNRESET, EIO, ENODEV})) return channel.Broken();
  if (error == EFAULT) return CUDA_ERROR_INVALID_VALUE;
  return error == ENOTSUP ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
}

// A buffer that lies here where kernels have it.
CUresult MakeBuffer(Device* device, uint64_t bytes, Transport::Buffer* out) {
  Channel& channel = *device->channel;
  if (const CUresult error = Refused(channel, channel.transport().AllocBuffer(bytes, out))) return error;
  uint64_t address = 0;
  CUresult status = AskAddress(channel, *out, &address);
  if (status == CUDA_SUCCESS && !MoveTo(out, address)) status = CUDA_ERROR_NOT_SUPPORTED;
  if (status != CUDA_SUCCESS) channel.transport().FreeBuffer(*out);
  return status;
}

// The buffer lies here anywhere; nothing of the program's is where kernels have it.
CUresult SetApart(State& state, const Piece& made, CUdeviceptr* there) REQUIRES(state.mutex) {
  Piece piece = made;
  Channel& channel = *piece.device->channel;
  CUresult status = AskAddress(channel, piece.buffer, &piece.begin);
  if (status == CUDA_SUCCESS && AddressesAreFree() && !(piece.reserved = Reserve(piece.begin, piece.bytes)))
    status = CUDA_ERROR_NOT_SUPPORTED;
  if (status != CUDA_SUCCESS) {
    channel.transport().FreeBuffer(piece.buffer);
    return status;
  }
  state.pieces[piece.begin] = piece;
  *there = piece.begin;
  return CUDA_SUCCESS;
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
    state.pieces[*address] = {device, slab.buffer, begin, need, Piece::Kind::kOfSlab};
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
  state.pieces[AddressOf(*out)] = {device, *out, AddressOf(*out), bytes};
  return CUDA_SUCCESS;
}

// Does a page of [pages, pages + bytes) have something of a buffer?
bool MeetsBuffer(State& state, uint64_t pages, uint64_t bytes) REQUIRES(state.mutex) {
  const auto next = state.pieces.lower_bound(pages + bytes);
  return next != state.pieces.begin() && std::prev(next)->first + Up(std::prev(next)->second.bytes, kPage) > pages;
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

CUresult AllocApart(Device* device, uint64_t bytes, Transport::Buffer* out, CUdeviceptr* there) {
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  if (bytes > ~uint64_t{0} - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  Channel& channel = *device->channel;
  Piece piece{device, {}, 0, Up(bytes, kPage), Piece::Kind::kApart};
  State& state = TheState();
  MutexLock lock(state.mutex);
  if (const CUresult error = Refused(channel, channel.transport().AllocBuffer(piece.bytes, &piece.buffer)))
    return error;
  *out = piece.buffer;
  return SetApart(state, piece, there);
}

void FreeShared(Device* device, uint64_t address) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.pieces.find(address);
  if (it == state.pieces.end() || it->second.device != device) return;
  const Piece piece = it->second;
  state.pieces.erase(it);
  if (piece.reserved) munmap(reinterpret_cast<void*>(piece.begin), piece.bytes);
  if (piece.kind != Piece::Kind::kOfSlab) {
    device->channel->transport().FreeBuffer(piece.buffer);
    return;
  }
  const auto slab = state.slabs.find(piece.begin);
  PutBack(slab->second, address - piece.begin, piece.bytes);
  // The last one of a device stays: the next piece comes soon.
  bool others = false;
  for (const auto& [begin, other] : state.slabs) others |= begin != piece.begin && other.device == device;
  if (slab->second.used != 0 || !others) return;
  device->channel->transport().FreeBuffer(piece.buffer);
  state.slabs.erase(slab);
}

CUresult PinShared(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* there) {
  if (!device->shares_memory) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t pages = address & ~(kPage - 1);
  Piece piece{device, {}, 0, Up(address + bytes - pages, kPage), Piece::Kind::kPinned};
  State& state = TheState();
  MutexLock lock(state.mutex);
  if (MeetsBuffer(state, pages, piece.bytes)) return CUDA_ERROR_INVALID_VALUE;
  Channel& channel = *device->channel;
  if (const CUresult error = Refused(channel, channel.transport().PinBuffer(pages, piece.bytes, &piece.buffer)))
    return error;
  const CUresult status = SetApart(state, piece, there);
  *there += address - pages;
  return status;
}

void UnpinShared(Device* device, CUdeviceptr there) {
  State& state = TheState();
  const uint64_t begin = there & ~(kPage - 1);
  {
    MutexLock lock(state.mutex);
    const auto it = state.pieces.find(begin);
    if (it == state.pieces.end() || it->second.kind != Piece::Kind::kPinned) return;
  }
  FreeShared(device, begin);
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
  return {piece.device, piece.buffer.id, address - piece.begin};
}

}  // namespace vgpud::cuda
