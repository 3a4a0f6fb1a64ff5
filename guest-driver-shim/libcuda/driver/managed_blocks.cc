// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPiece = 256 * 1024;  // less than any payload area takes
// Host and device may write to the same piece, but not to the same line, without a wait between them.
constexpr uint64_t kLine = 64;

struct Block {
  Device* device = nullptr;
  Context* context = nullptr;
  uint64_t epoch = 0;
  CUdeviceptr allocation = 0;  // what the executor gave; 0: a variable of a module
  uint64_t bytes = 0;          // whole pages, of a variable its own
  std::byte* known = nullptr;  // what both sides last agreed on
  bool device_may_differ = false;
  bool is_shared = false;  // there is no other side
};
struct Blocks {
  Mutex mutex{lock_rank::kManaged};
  std::map<CUdeviceptr, Block> map GUARDED_BY(mutex);       // by the address that programs use
  std::map<CUdeviceptr, uint32_t> pages GUARDED_BY(mutex);  // that the host has for variables: how many are on each
};
Blocks& TheBlocks() {
  static auto* const blocks = new Blocks;
  return *blocks;
}
std::atomic<size_t> block_count{0};
std::atomic<size_t> exchanged_count{0};  // of those that have two sides
// Counts the turns of the host: what a thread has looked at since the last one need not be looked at again.
std::atomic<uint64_t> host_turns{1};

// After each change.
void Count(const Blocks& blocks) REQUIRES(blocks.mutex) {
  size_t exchanged = 0;
  for (const auto& [address, block] : blocks.map) exchanged += block.is_shared ? 0 : 1;
  exchanged_count = exchanged;
  block_count = blocks.map.size();
}

void UnmapPages(Blocks& blocks, CUdeviceptr first, CUdeviceptr end) REQUIRES(blocks.mutex) {
  for (CUdeviceptr page = first; page < end; page += kPage) {
    const auto it = blocks.pages.find(page);
    if (--it->second != 0) continue;
    munmap(reinterpret_cast<void*>(page), kPage);
    blocks.pages.erase(it);
  }
}
// The pages of [first, end), both multiples of kPage; false and none of them when one is taken by something else.
bool MapPages(Blocks& blocks, CUdeviceptr first, CUdeviceptr end) REQUIRES(blocks.mutex) {
  for (CUdeviceptr page = first; page < end; page += kPage) {
    uint32_t& users = blocks.pages[page];
    if (users++ != 0) continue;
    void* const wanted = reinterpret_cast<void*>(page);
    void* const got =
        mmap(wanted, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) continue;
    if (got != MAP_FAILED) munmap(got, kPage);
    blocks.pages.erase(page);
    UnmapPages(blocks, first, page);
    return false;
  }
  return true;
}

uint64_t Pages(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

void Unmap(Blocks& blocks, CUdeviceptr address, const Block& block) REQUIRES(blocks.mutex) {
  if (block.is_shared) {
    if (block.allocation != 0) FreeShared(block.device, address);
    return;
  }
  munmap(block.known, Pages(block.bytes));
  if (block.allocation != 0) {
    munmap(reinterpret_cast<void*>(address), block.bytes);
  } else {
    UnmapPages(blocks, address & ~(kPage - 1), Pages(address + block.bytes));
  }
}

void Note(CUdeviceptr address, const Block& block) {
  Blocks& blocks = TheBlocks();
  MutexLock lock(blocks.mutex);
  blocks.map[address] = block;
  Count(blocks);
}

// f(offset, bytes) for each run of lines in which `now` differs from `known`.
template <class F>
CUresult ForChanges(const std::byte* now, const std::byte* known, uint64_t bytes, F f) {
  const auto differ = [&](uint64_t at, uint64_t n) {
    return memcmp(now + at, known + at, std::min(n, bytes - at)) != 0;
  };
  for (uint64_t at = 0; at < bytes;) {
    if (at % kPage == 0 && !differ(at, kPage)) {
      at += kPage;
    } else if (!differ(at, kLine)) {
      at += kLine;
    } else {
      const uint64_t begin = at;
      while (at < bytes && at - begin < kPiece && differ(at, kLine)) at += kLine;
      if (const CUresult error = f(begin, std::min(at, bytes) - begin)) return error;
    }
  }
  return CUDA_SUCCESS;
}

// Exchanges run in a stream that waits for no other: the caller has waited for what matters.
CUresult ExchangeStream(const Current& current, uint32_t* number) {
  static thread_local std::map<std::pair<Device*, uint64_t>, uint32_t> streams;
  const auto [it, fresh] = streams.try_emplace({current.device, current.device->epoch.load()});
  if (fresh) {
    it->second = current.device->next_stream.fetch_add(1);
    Command create;
    create.op = VGPU_OP_STREAM_CREATE;
    create.args[0] = it->second;
    create.args[1] = VGPU_STREAM_NON_BLOCKING;
    if (const CUresult error = current.channel->Call(create).status) {
      streams.erase(it);
      return error;
    }
  }
  *number = it->second;
  return CUDA_SUCCESS;
}

CUresult Publish(const Current& current, uint32_t stream, CUdeviceptr address, const Block& block) {
  auto* const host = reinterpret_cast<std::byte*>(address);
  return ForChanges(host, block.known, block.bytes, [&](uint64_t offset, uint64_t bytes) {
    Command command;
    command.op = VGPU_OP_COPY_IN;
    command.stream = stream;
    command.args[0] = address + offset;
    memcpy(block.known + offset, host + offset, bytes);
    return current.channel->Post(command, {block.known + offset, bytes});
  });
}

CUresult Fetch(const Current& current, uint32_t stream, CUdeviceptr address, const Block& block) {
  std::vector<std::byte> piece(std::min({block.bytes, kPiece, current.channel->max_span() / kPage * kPage}));
  auto* const host = reinterpret_cast<std::byte*>(address);
  for (uint64_t at = 0; at < block.bytes; at += piece.size()) {
    const uint64_t n = std::min<uint64_t>(piece.size(), block.bytes - at);
    Command command;
    command.op = VGPU_OP_COPY_OUT;
    command.stream = stream;
    command.args[0] = address + at;
    if (const CUresult error = current.channel->Call(command, {}, {piece.data(), n}).status) return error;
    ForChanges(piece.data(), block.known + at, n, [&](uint64_t offset, uint64_t bytes) {
      memcpy(host + at + offset, piece.data() + offset, bytes);
      memcpy(block.known + at + offset, piece.data() + offset, bytes);
      return CUDA_SUCCESS;
    });
  }
  return CUDA_SUCCESS;
}

// nullopt: there is no such memory, and none is needed.
std::optional<CUresult> AllocOneSided(const Current& current, Block block, CUdeviceptr* out, size_t bytes) {
  Device& device = *current.device;
  if (!device.shares_memory) return std::nullopt;
  uint64_t address = 0;
  CUresult error = AllocShared(&device, bytes, &address);
  if (error == CUDA_ERROR_NOT_SUPPORTED) {  // no address that is good for both
    // Where the host waits for kernels anyway, two sides do as well.
    if (device.attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) return std::nullopt;
    error = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (error != CUDA_SUCCESS) return error;
  block.is_shared = true;
  block.bytes = bytes;
  block.allocation = *out = address;
  {
    MutexLock lock(device.mutex);
    device.allocations[*out] = {bytes, current.context.get(), nullptr};
  }
  Note(*out, block);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult AllocManaged(const Current& current, CUdeviceptr* out, size_t bytes) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > ~uint64_t{0} - 2 * kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!AddressesAreFree()) return CUDA_ERROR_NOT_SUPPORTED;
  Block block;
  block.device = current.device;
  block.context = current.context.get();
  block.epoch = current.device->epoch.load();
  if (const auto shared = AllocOneSided(current, block, out, bytes)) return *shared;
  block.bytes = (bytes + kPage - 1) & ~(kPage - 1);
  if (const CUresult error = AllocDevice(current, &block.allocation, block.bytes + kPage)) return error;
  const CUdeviceptr address = (block.allocation + kPage - 1) & ~(kPage - 1);
  Command fill;
  fill.op = VGPU_OP_FILL;
  fill.args[0] = address;
  fill.args[2] = 4;
  fill.args[3] = block.bytes / 4;
  const CUresult error = current.channel->Call(fill).status;
  void* const host = mmap(reinterpret_cast<void*>(address), block.bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  void* const known =
      mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (error != CUDA_SUCCESS || host != reinterpret_cast<void*>(address) || known == MAP_FAILED) {
    if (host != MAP_FAILED) munmap(host, block.bytes);
    if (known != MAP_FAILED) munmap(known, block.bytes);
    Command undo;
    undo.op = VGPU_OP_MEM_FREE;
    undo.args[0] = block.allocation;
    current.channel->Call(undo);
    MutexLock lock(current.device->mutex);
    current.device->allocations.erase(block.allocation);
    return error != CUDA_SUCCESS ? error : CUDA_ERROR_OUT_OF_MEMORY;
  }
  block.known = static_cast<std::byte*>(known);
  {
    // Programs know the allocation by the address that both sides share.
    MutexLock lock(current.device->mutex);
    current.device->allocations.erase(block.allocation);
    current.device->allocations[address] = {bytes, current.context.get(), nullptr};
  }
  Note(address, block);
  host_turns.fetch_add(1);
  *out = address;
  return CUDA_SUCCESS;
}

std::optional<CUresult> FreeManaged(const Current& current, CUdeviceptr address) {
  if (block_count.load(std::memory_order_relaxed) == 0) return std::nullopt;
  Blocks& blocks = TheBlocks();
  Command command;
  bool shared = false;
  {
    MutexLock lock(blocks.mutex);
    const auto it = blocks.map.find(address);
    if (it == blocks.map.end() || it->second.device != current.device) return std::nullopt;
    shared = it->second.is_shared;
    command.op = shared ? VGPU_OP_CONTEXT_SYNC : VGPU_OP_MEM_FREE;
    if (!shared) {
      command.args[0] = it->second.allocation;
      Unmap(blocks, address, it->second);
    }
    blocks.map.erase(it);
    Count(blocks);
  }
  const CUresult status = current.channel->Call(command).status;
  if (shared) FreeShared(current.device, address);
  return status;
}

CUresult AdoptManagedVariable(Device* device, CUdeviceptr address, uint64_t bytes, bool shared) {
  if (bytes == 0) return CUDA_SUCCESS;
  const uint64_t epoch = device->epoch.load();
  Blocks& blocks = TheBlocks();
  MutexLock lock(blocks.mutex);
  // Those of the device before its last reset are nobody's any more.
  for (auto it = blocks.map.begin(); it != blocks.map.end();) {
    const Block& old = it->second;
    const bool stale = old.allocation == 0 && old.device == device && old.epoch != epoch;
    if (stale) Unmap(blocks, it->first, old);
    it = stale ? blocks.map.erase(it) : std::next(it);
  }
  Block block;  // of no context: the module stays on the device when contexts go
  block.device = device;
  block.epoch = epoch;
  block.bytes = bytes;
  block.is_shared = shared;
  if (shared) {
    blocks.map[address] = block;
    Count(blocks);
    return CUDA_SUCCESS;
  }
  void* const known =
      mmap(nullptr, Pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (known == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!MapPages(blocks, address & ~(kPage - 1), Pages(address + bytes))) {
    munmap(known, Pages(bytes));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  block.known = static_cast<std::byte*>(known);
  // The pages may hold what an earlier module left there; the exchange compares with `known`.
  memset(reinterpret_cast<void*>(address), 0, bytes);
  const Current current{.context = nullptr, .device = device, .channel = device->channel.get()};
  uint32_t stream = 0;
  CUresult error = ExchangeStream(current, &stream);
  if (error == CUDA_SUCCESS) error = Fetch(current, stream, address, block);
  if (error != CUDA_SUCCESS) {
    Unmap(blocks, address, block);
    return error;
  }
  blocks.map[address] = block;
  Count(blocks);
  host_turns.fetch_add(1);
  return CUDA_SUCCESS;
}

void ForgetManagedVariable(Device* device, CUdeviceptr address) {
  if (block_count.load(std::memory_order_relaxed) == 0) return;
  Blocks& blocks = TheBlocks();
  MutexLock lock(blocks.mutex);
  const auto it = blocks.map.find(address);
  if (it == blocks.map.end() || it->second.device != device) return;
  Unmap(blocks, address, it->second);
  blocks.map.erase(it);
  Count(blocks);
}

void DropManagedOf(const Context* context) {
  Blocks& blocks = TheBlocks();
  std::vector<std::pair<CUdeviceptr, Block>> dropped;
  {
    MutexLock lock(blocks.mutex);
    for (const auto& each : blocks.map)
      if (each.second.context == context) dropped.push_back(each);
    for (const auto& [address, block] : dropped) blocks.map.erase(address);
    Count(blocks);
  }
  for (const auto& [address, block] : dropped) {
    Device* const device = block.device;
    if (block.is_shared) {
      Command wait;
      wait.op = VGPU_OP_CONTEXT_SYNC;
      device->channel->Call(wait);
    }
    {
      MutexLock lock(blocks.mutex);
      Unmap(blocks, address, block);
    }
    if (!block.is_shared && block.epoch == device->epoch.load()) {
      Command command;
      command.op = VGPU_OP_MEM_FREE;
      command.args[0] = block.allocation;
      device->channel->Call(command);
    }
    if (block.is_shared || block.epoch == device->epoch.load()) {
      MutexLock lock(device->mutex);
      device->allocations.erase(address);
    }
  }
}

bool IsManaged(CUdeviceptr address, uint64_t bytes) {
  if (block_count.load(std::memory_order_relaxed) == 0) return false;
  Blocks& blocks = TheBlocks();
  MutexLock lock(blocks.mutex);
  return Containing(blocks.map, address, bytes, [](const Block& b) { return b.bytes; }) != blocks.map.end();
}

CUresult PublishManaged(const Current& current) {
  static thread_local std::map<Device*, uint64_t> seen;
  if (exchanged_count.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  Blocks& blocks = TheBlocks();
  const Turns::Exempt exempt;  // whoever serves a turn may wait for the lock
  MutexLock lock(blocks.mutex);
  const uint64_t turn = host_turns.load();
  const bool look = seen[current.device] != turn;
  uint32_t stream = 0;
  for (auto& [address, block] : blocks.map) {
    if (block.is_shared || block.device != current.device || block.epoch != current.device->epoch.load()) continue;
    block.device_may_differ = true;
    if (!look) continue;
    if (stream == 0) {
      if (const CUresult error = ExchangeStream(current, &stream)) return error;
    }
    if (const CUresult error = Publish(current, stream, address, block)) return error;
  }
  if (stream == 0) return CUDA_SUCCESS;
  // The work that is submitted next may be of any stream.
  Command wait;
  wait.op = VGPU_OP_STREAM_SYNC;
  wait.stream = stream;
  const CUresult status = current.channel->Call(wait).status;
  if (status == CUDA_SUCCESS) seen[current.device] = turn;
  return status;
}

CUresult FetchManaged(const Current& current, bool all_is_done) {
  if (exchanged_count.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  Blocks& blocks = TheBlocks();
  const Turns::Exempt exempt;
  MutexLock lock(blocks.mutex);
  host_turns.fetch_add(1);
  uint32_t stream = 0;
  for (auto& [address, block] : blocks.map) {
    if (block.is_shared || block.device != current.device || block.epoch != current.device->epoch.load()) continue;
    if (!block.device_may_differ) continue;
    if (stream == 0) {
      if (const CUresult error = ExchangeStream(current, &stream)) return error;
    }
    if (const CUresult error = Fetch(current, stream, address, block)) return error;
    block.device_may_differ = !all_is_done;
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda
