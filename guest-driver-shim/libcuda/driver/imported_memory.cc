// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/imported_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <map>
#include <utility>

#include "guest-driver-shim/libcuda/channel/mappings.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;

struct Described {
  uint64_t bytes = 0;
  int fd = -1;
  uint64_t offset = 0;
};
using FileId = std::pair<uint64_t, uint64_t>;  // device and inode; {}: one that was described
// A file that is open for as long as some of its memory is imported: whoever imports more of it may find no way to it,
// since memory that processes share has often lost its name when the last of them maps it.
struct OpenFile {
  KnownFd fd;
  int users = 0;
};
struct Imported {
  Device* device = nullptr;
  Transport::Buffer buffer;
  FileId file;
};
struct State {
  Mutex mutex{lock_rank::kImported};
  std::map<uint64_t, Described> described GUARDED_BY(mutex);  // by address
  std::map<uint64_t, Imported> imported GUARDED_BY(mutex);    // by address
  std::map<FileId, OpenFile> files GUARDED_BY(mutex);
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// Pages of a file.
struct Piece {
  int fd = -1;  // -1: of none
  FileId file;
  uint64_t pages = 0;  // where they are here
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

void LetGo(State& state, const FileId& file) REQUIRES(state.mutex) {
  const auto it = state.files.find(file);
  if (it != state.files.end() && --it->second.users == 0) state.files.erase(it);
}

// Its file stays open until LetGo.
Piece FindPiece(State& state, uint64_t address, uint64_t bytes) REQUIRES(state.mutex) {
  if (const auto it = state.described.find(address); it != state.described.end()) {
    const Described described = it->second;
    state.described.erase(it);
    return {described.bytes == bytes ? described.fd : -1, {}, address, bytes, described.offset};
  }
  Piece piece;
  piece.pages = address & ~(kPage - 1);
  piece.bytes = (address + bytes - piece.pages + kPage - 1) & ~(kPage - 1);
  const ShownFile shown = FileShown(piece.pages, piece.bytes);
  if (shown.inode == 0) return {};
  piece.file = {shown.device, shown.inode};
  piece.offset = shown.offset;
  auto& [known, users] = state.files[piece.file];
  if (users == 0 || !known.IsSame()) known = KnownFd(OpenShown(shown));
  ++users;
  piece.fd = known.get();
  return piece;
}

// The device maps it as `out`, which is mapped here at that address, too, where buffers are.
CUresult Import(Device* device, const Piece& piece, Transport::Buffer* out, uint64_t* there) {
  Channel& channel = *device->channel;
  const int refused = channel.transport().ImportBuffer(piece.fd, piece.offset, piece.bytes, out);
  if (refused == EPIPE || refused == ECONNRESET) return channel.Broken();
  if (refused != 0) return refused == ENOMEM || refused == ENOSPC ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
  Command command;
  command.op = VGPU_OP_BUF_ADDRESS;
  command.args[0] = out->id;
  const Completion done = channel.Call(command);
  CUresult status = done.status;
  *there = done.value[0];
  if (status == CUDA_SUCCESS && channel.transport().maps_buffers()) {
    void* const wanted = reinterpret_cast<void*>(*there);
    void* const at = mmap(wanted, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, piece.fd,
                          static_cast<off_t>(piece.offset));
    if (at != MAP_FAILED) out->address = at;
    if (at == wanted)
      madvise(at, piece.bytes, MADV_DONTFORK);
    else
      status = CUDA_ERROR_NOT_SUPPORTED;
  }
  if (status != CUDA_SUCCESS) channel.transport().FreeBuffer(*out);
  return status;
}

}  // namespace

CUresult ImportMemory(Device* device, uint64_t address, uint64_t bytes, CUdeviceptr* out) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  if (state.imported.contains(address)) return CUDA_ERROR_NOT_SUPPORTED;
  const Piece piece = FindPiece(state, address, bytes);
  Imported imported{device, {}, piece.file};
  uint64_t there = 0;
  const CUresult status = piece.fd < 0 ? CUDA_ERROR_NOT_SUPPORTED : Import(device, piece, &imported.buffer, &there);
  if (status != CUDA_SUCCESS) {
    LetGo(state, piece.file);
    return status;
  }
  state.imported[address] = imported;
  *out = there + (address - piece.pages);
  return CUDA_SUCCESS;
}

void ForgetImported(uint64_t address) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  const auto it = state.imported.find(address);
  if (it == state.imported.end()) return;
  it->second.device->channel->transport().FreeBuffer(it->second.buffer);
  LetGo(state, it->second.file);
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
