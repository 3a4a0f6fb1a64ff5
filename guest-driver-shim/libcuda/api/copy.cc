// SPDX-License-Identifier: Apache-2.0
// Copies. Pinned host memory is shared with the executor; anything else travels through the payload area in pieces.
#include "guest-driver-shim/libcuda/api/copy.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/launch/host_function.h"

namespace {

using namespace vgpud::cuda;

constexpr uint64_t kPiece = 512 * 1024;
// Up to here a copy from pageable memory returns when its bytes are staged, as CUDA documents.
constexpr uint64_t kStagedBytes = 64 * 1024;

// A capturing stream takes no copy that is waited for.
CUresult MayWait(const Place& place, Finish finish) {
  if (place.error != CUDA_SUCCESS) return place.error;
  return finish == Finish::kWait ? RefuseInCapture(place.current, place.stream) : CUDA_SUCCESS;
}

CUresult Run(const Place& place, const Command& command, Finish finish) {
  return finish == Finish::kWait ? place.current.channel->Call(command).status : Enqueue(place.current, command);
}

// The device in whose memory it is, unless that is the device of the stream; nullptr: it is there, or in no device's.
Device* Elsewhere(const Place& place, CUdeviceptr address) {
  if (Driver::Get().devices().size() == 1 || IsDeviceRange(place.current.device, address, 1)) return nullptr;
  return DeviceOf(address);
}

// Device memory where a copy is told that there is host memory: the kind of the copy is wrong, or its arguments are in
// the wrong order. The program's own memory may not be where it is then.
bool IsOnlyOfDevice(Device* device, const void* address) {
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  return IsDeviceRange(device, at, 1) && !IsManaged(at);
}
// A long copy from or to memory that the program does not have. Short ones are not worth asking the kernel.
bool EndsNowhere(const void* host, uint64_t bytes) { return bytes > kStagedBytes && !IsHostMemory(host, bytes); }
// What CUDA is to find out by itself is no device memory: is it the program's? Freed device memory is neither.
bool IsSomewhere(const Place& place, CUdeviceptr address, uint64_t bytes) {
  return bytes == 0 || IsDeviceRange(place.current.device, address, 1) || Elsewhere(place, address) != nullptr ||
         IsHostMemory(reinterpret_cast<const void*>(address), bytes);
}

// Captures a copy of bytes that are in one piece; the types are CUmemorytypes.
CUresult CaptureCopy(const Place& place, const InCapture& capture, int to_type, CUdeviceptr to, int from_type,
                     CUdeviceptr from, uint64_t bytes, GraphWork submit) {
  CUDA_MEMCPY3D_st told{};
  told.srcMemoryType = from_type;
  told.dstMemoryType = to_type;
  if (from_type == CU_MEMORYTYPE_HOST) {
    told.srcHost = reinterpret_cast<const void*>(from);
  } else {
    told.srcDevice = from;
  }
  if (to_type == CU_MEMORYTYPE_HOST) {
    told.dstHost = reinterpret_cast<void*>(to);
  } else {
    told.dstDevice = to;
  }
  told.WidthInBytes = told.srcPitch = told.dstPitch = bytes;
  told.Height = told.Depth = told.srcHeight = told.dstHeight = 1;
  return capture.Add(place.current, CU_GRAPH_NODE_TYPE_MEMCPY, {std::move(submit), told});
}
CUdeviceptr AddressOf(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }
// Bytes in the payload area keep back those of all streams that come behind them. So what may wait for long is waited
// for before it has any.
CUresult ReachTurn(const Place& place) {
  return place.current.channel->AnyHeld() ? SyncStream(place.current, place.stream) : CUDA_SUCCESS;
}
void* Pointer(CUdeviceptr host) { return reinterpret_cast<void*>(host); }

// One side of a copy.
struct End {
  Device* device;  // nullptr: the host
  CUdeviceptr at;
};

// Bytes from one side to the other, in no stream of the program's: it has waited for what is to be done before.
CUresult Carry(const End& to, const End& from, uint64_t bytes) {
  struct OwnStream {
    explicit OwnStream(Device* of) : device(of) {
      if (device != nullptr) error = CreateStreamNumber(device, CU_STREAM_NON_BLOCKING, 0, &number);
    }
    OwnStream(const OwnStream&) = delete;
    ~OwnStream() {
      if (device != nullptr && error == CUDA_SUCCESS) DestroyStreamNumber(device, number);
    }
    Device* const device;
    uint32_t number = 0;
    CUresult error = CUDA_SUCCESS;
  };
  const OwnStream there(to.device), here(from.device);
  for (const OwnStream* each : {&there, &here})
    if (each->error != CUDA_SUCCESS) return each->error;
  std::vector<std::byte> piece(std::min(bytes, kPiece));
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    const std::span part(piece.data(), std::min<uint64_t>(piece.size(), bytes - at));
    const auto call = [&](uint32_t op, const End& end, const OwnStream& stream, std::span<const std::byte> payload,
                          std::span<std::byte> answer) {
      return end.device->channel->Call({.op = op, .stream = stream.number, .args = {end.at + at}}, payload, answer)
          .status;
    };
    CUresult error = CUDA_SUCCESS;
    if (from.device == nullptr) {
      memcpy(part.data(), Pointer(OfHost(from.at + at)), part.size());
    } else {
      error = call(VGPU_OP_COPY_OUT, from, here, {}, part);
    }
    if (error != CUDA_SUCCESS) return error;
    if (to.device == nullptr) {
      memcpy(Pointer(OfHost(to.at + at)), part.data(), part.size());
    } else {
      error = call(VGPU_OP_COPY_IN, to, there, part, {});
    }
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

bool IsThere(const End& end, uint64_t bytes) {
  return end.device != nullptr ? IsDeviceRange(end.device, end.at, bytes) : IsHostMemory(Pointer(end.at), bytes);
}

// A copy with a side on another device than the stream's: this process carries the bytes, when the stream is there.
CUresult Across(const Place& place, const End& to, const End& from, uint64_t bytes, Finish finish) {
  if (const CUresult error = MayWait(place, finish)) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsThere(to, bytes) || !IsThere(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const InCapture capture = Capturing(place.current, place.stream)) {
    const auto submit = [=](const Current& at, uint32_t stream) {
      return Across({at, stream, CUDA_SUCCESS}, to, from, bytes, Finish::kLater);
    };
    const auto type = [](const End& end) { return end.device != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; };
    return CaptureCopy(place, capture, type(to), to.at, type(from), from.at, bytes, submit);
  }
  const auto is_pageable = [](const End& end) { return end.device == nullptr && !IsHostBlock(end.at); };
  if (finish == Finish::kLater && !is_pageable(to) && !is_pageable(from)) {
    const auto carry = [=, channel = place.current.channel](CUresult status) {
      if (status != CUDA_SUCCESS) return;
      if (const CUresult error = Carry(to, from, bytes)) channel->LeavePostedError(error);
    };
    return EnqueueHostFunction(place.current, place.stream, carry, true);
  }
  if (const CUresult error = SyncStream(place.current, place.stream)) return error;
  for (Device* const device : {to.device, from.device}) {
    if (finish == Finish::kLater || device == nullptr || device == place.current.device) continue;
    if (const CUresult error = SyncStream(PrimaryOf(device), VGPU_STREAM_LEGACY)) return error;
  }
  return Carry(to, from, bytes);
}

CUresult PinnedCopy(const Place& place, uint32_t op, CUdeviceptr device_address, const PinnedSpan& host, uint64_t bytes,
                    Finish finish) {
  Command command;
  command.op = op;
  command.stream = place.stream;
  command.args[0] = device_address;
  command.args[1] = host.buffer;
  command.args[2] = host.offset;
  command.args[3] = bytes;
  return Run(place, command, finish);
}

CUresult ToDevice(const Place& place, CUdeviceptr to, const void* from, uint64_t bytes, Finish finish) {
  if (const CUresult error = MayWait(place, finish)) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == 0 || IsOnlyOfDevice(place.current.device, from)) return CUDA_ERROR_INVALID_VALUE;
  if (Device* const other = Elsewhere(place, to))
    return Across(place, {other, to}, {nullptr, AddressOf(from)}, bytes, finish);
  if (const InCapture capture = Capturing(place.current, place.stream)) {
    const auto submit = [=](const Current& at, uint32_t stream) {
      return ToDevice({at, stream, CUDA_SUCCESS}, to, from, bytes, Finish::kLater);
    };
    return CaptureCopy(place, capture, CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST, AddressOf(from), bytes, submit);
  }
  if (const CUresult error = PublishManaged(place.current)) return error;
  const PinnedSpan pinned = FindPinned(from, bytes);
  from = Pointer(OfHost(AddressOf(from)));
  if (pinned.device == place.current.device) {
    return PinnedCopy(place, VGPU_OP_BUF_IN, to, pinned, bytes, finish);
  }
  const bool known = IsDeviceRange(place.current.device, to, bytes);
  // What goes beyond an allocation is told before the other side is touched.
  if (!known && IsDeviceRange(place.current.device, to, 1)) return CUDA_ERROR_INVALID_VALUE;
  if (EndsNowhere(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kStagedBytes)
    if (const CUresult error = ReachTurn(place)) return error;
  const uint64_t piece = std::min(kPiece, place.current.channel->max_span());
  for (uint64_t at = 0; at < bytes; at += piece) {
    const uint64_t n = std::min(piece, bytes - at);
    Command command;
    command.op = VGPU_OP_COPY_IN;
    command.stream = place.stream;
    command.args[0] = to + at;
    const std::span payload(static_cast<const std::byte*>(from) + at, n);
    // The last piece tells whether all is well; an unknown range is told of at once.
    const bool last = at + n == bytes;
    const bool wait = !known || (finish == Finish::kWait && last && bytes > kStagedBytes);
    const CUresult error =
        wait ? place.current.channel->Call(command, payload).status : Enqueue(place.current, command, payload);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult FromDevice(const Place& place, void* to, CUdeviceptr from, uint64_t bytes, Finish finish) {
  if (const CUresult error = MayWait(place, finish)) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == nullptr || from == 0 || IsOnlyOfDevice(place.current.device, to)) return CUDA_ERROR_INVALID_VALUE;
  if (Device* const other = Elsewhere(place, from))
    return Across(place, {nullptr, AddressOf(to)}, {other, from}, bytes, finish);
  if (const InCapture capture = Capturing(place.current, place.stream)) {
    const auto submit = [=](const Current& at, uint32_t stream) {
      return FromDevice({at, stream, CUDA_SUCCESS}, to, from, bytes, Finish::kLater);
    };
    return CaptureCopy(place, capture, CU_MEMORYTYPE_HOST, AddressOf(to), CU_MEMORYTYPE_DEVICE, from, bytes, submit);
  }
  if (const CUresult error = PublishManaged(place.current)) return error;
  const PinnedSpan pinned = FindPinned(to, bytes);
  to = Pointer(OfHost(AddressOf(to)));
  if (pinned.device == place.current.device) {
    return PinnedCopy(place, VGPU_OP_BUF_OUT, from, pinned, bytes, finish);
  }
  const bool known = IsDeviceRange(place.current.device, from, bytes);
  if (!known && IsDeviceRange(place.current.device, from, 1)) return CUDA_ERROR_INVALID_VALUE;
  if (EndsNowhere(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = ReachTurn(place)) return error;
  const uint64_t piece = std::min(kPiece, place.current.channel->max_span());
  for (uint64_t at = 0; at < bytes; at += piece) {
    const uint64_t n = std::min(piece, bytes - at);
    Command command;
    command.op = VGPU_OP_COPY_OUT;
    command.stream = place.stream;
    command.args[0] = from + at;
    const Completion done = place.current.channel->Call(command, {}, {static_cast<std::byte*>(to) + at, n});
    if (done.status != CUDA_SUCCESS) return done.status;
  }
  return CUDA_SUCCESS;
}

CUresult OnDevice(const Place& place, CUdeviceptr to, CUdeviceptr from, uint64_t bytes, Finish finish) {
  if (const CUresult error = MayWait(place, finish)) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  Device* const there = Elsewhere(place, to);
  Device* const here = Elsewhere(place, from);
  if (there != nullptr || here != nullptr) {
    const auto or_own = [&](Device* other) { return other != nullptr ? other : place.current.device; };
    return Across(place, {or_own(there), to}, {or_own(here), from}, bytes, finish);
  }
  if (const InCapture capture = Capturing(place.current, place.stream)) {
    const auto submit = [=](const Current& at, uint32_t stream) {
      return OnDevice({at, stream, CUDA_SUCCESS}, to, from, bytes, Finish::kLater);
    };
    return CaptureCopy(place, capture, CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes, submit);
  }
  Command command;
  command.op = VGPU_OP_COPY_DEV;
  command.stream = place.stream;
  command.args[0] = to;
  command.args[1] = from;
  command.args[2] = bytes;
  if (const CUresult error = PublishManaged(place.current)) return error;
  return Run(place, command, finish);
}

// What the host may read when a copy has returned, where there is managed memory.
CUresult Settle(const Place& place, CUdeviceptr to, Finish finish, CUresult status) {
  if (status != CUDA_SUCCESS || finish != Finish::kWait || place.error != CUDA_SUCCESS) return status;
  if (IsManaged(to)) {
    if (const CUresult error = SyncStream(place.current, place.stream)) return error;
  }
  return FetchManaged(place.current, false);
}

// Host to host in stream order: after the stream's earlier work.
CUresult OnHost(const Place& place, void* to, const void* from, uint64_t bytes) {
  if (place.error != CUDA_SUCCESS) return place.error;
  if (const InCapture capture = Capturing(place.current, place.stream)) {
    const auto submit = [=](const Current& at, uint32_t stream) {
      return OnHost({at, stream, CUDA_SUCCESS}, to, from, bytes);
    };
    return CaptureCopy(place, capture, CU_MEMORYTYPE_HOST, AddressOf(to), CU_MEMORYTYPE_HOST, AddressOf(from), bytes,
                       submit);
  }
  if (const CUresult error = SyncStream(place.current, place.stream)) return error;
  memmove(Pointer(OfHost(AddressOf(to))), Pointer(OfHost(AddressOf(from))), bytes);
  return CUDA_SUCCESS;
}

}  // namespace

namespace vgpud::cuda {

CUresult CopyAnywhere(const Place& place, CUdeviceptr to, CUdeviceptr from, uint64_t bytes, Finish finish) {
  if (place.error != CUDA_SUCCESS) return place.error;
  if (bytes == 0) return CUDA_SUCCESS;
  Device* device = place.current.device;
  const bool to_device = IsDeviceRange(device, to, 1) || Elsewhere(place, to) != nullptr;
  const bool from_device = IsDeviceRange(device, from, 1) || Elsewhere(place, from) != nullptr;
  void* host_to = reinterpret_cast<void*>(to);
  const void* host_from = reinterpret_cast<const void*>(from);
  if (to_device && from_device) return Settle(place, to, finish, OnDevice(place, to, from, bytes, finish));
  if (to_device) return Settle(place, to, finish, ToDevice(place, to, host_from, bytes, finish));
  if (from_device) return Settle(place, 0, finish, FromDevice(place, host_to, from, bytes, finish));
  return OnHost(place, host_to, host_from, bytes);
}

}  // namespace vgpud::cuda

namespace {

CUresult HtoD(DefaultStream m, CUdeviceptr to, const void* from, size_t n) {
  const Place place = Where(m, nullptr);
  return Settle(place, to, Finish::kWait, ToDevice(place, to, from, n, Finish::kWait));
}
CUresult DtoH(DefaultStream m, void* to, CUdeviceptr from, size_t n) {
  const Place place = Where(m, nullptr);
  return Settle(place, 0, Finish::kWait, FromDevice(place, to, from, n, Finish::kWait));
}
// Copies within a device do not hold up the host.
CUresult DtoD(DefaultStream m, CUdeviceptr to, CUdeviceptr from, size_t n) {
  const Place place = Where(m, nullptr);
  const bool known = place.error == CUDA_SUCCESS && IsDeviceRange(place.current.device, to, n) &&
                     IsDeviceRange(place.current.device, from, n);
  const bool later =
      known && !WantsSyncCopies(place.current.device, to) && !WantsSyncCopies(place.current.device, from);
  return OnDevice(place, to, from, n, later ? Finish::kLater : Finish::kWait);
}
CUresult CopyBetween(const Place& place, CUdeviceptr to, CUdeviceptr from, size_t n, Finish finish) {
  if (place.error != CUDA_SUCCESS) return place.error;
  if (!IsSomewhere(place, to, n) || !IsSomewhere(place, from, n)) return CUDA_ERROR_INVALID_VALUE;
  return CopyAnywhere(place, to, from, n, finish);
}
CUresult Copy(DefaultStream m, CUdeviceptr to, CUdeviceptr from, size_t n) {
  return CopyBetween(Where(m, nullptr), to, from, n, Finish::kWait);
}
CUresult HtoDLater(DefaultStream m, CUdeviceptr to, const void* from, size_t n, CUstream s) {
  return ToDevice(Where(m, s), to, from, n, Finish::kLater);
}
CUresult DtoHLater(DefaultStream m, void* to, CUdeviceptr from, size_t n, CUstream s) {
  return FromDevice(Where(m, s), to, from, n, Finish::kLater);
}
CUresult DtoDLater(DefaultStream m, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  return OnDevice(Where(m, s), to, from, n, Finish::kLater);
}
CUresult CopyLater(DefaultStream m, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  return CopyBetween(Where(m, s), to, from, n, Finish::kLater);
}
// The devices that the contexts of a copy between peers name.
struct Peers {
  CUresult error = CUDA_ERROR_INVALID_CONTEXT;
  Device* to = nullptr;
  Device* from = nullptr;
  bool are_both(const Device* device) const { return to == device && from == device; }
};
Peers PeersOf(CUcontext to, CUcontext from) {
  auto& contexts = Driver::Get().contexts();
  const auto there = contexts.Find(to), here = contexts.Find(from);
  return there == nullptr || here == nullptr ? Peers{} : Peers{CUDA_SUCCESS, there->device, here->device};
}
CUresult Peer(DefaultStream m, CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t n) {
  const Peers peers = PeersOf(there, here);
  if (peers.error != CUDA_SUCCESS) return peers.error;
  const Place place = Where(m, nullptr);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (peers.are_both(place.current.device)) return DtoD(m, to, from, n);
  return Across(place, {peers.to, to}, {peers.from, from}, n, Finish::kWait);
}
CUresult PeerLater(DefaultStream m, CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t n,
                   CUstream s) {
  const Peers peers = PeersOf(there, here);
  if (peers.error != CUDA_SUCCESS) return peers.error;
  const Place place = Where(m, s);
  if (place.error != CUDA_SUCCESS) return place.error;
  if (peers.are_both(place.current.device)) return OnDevice(place, to, from, n, Finish::kLater);
  return Across(place, {peers.to, to}, {peers.from, from}, n, Finish::kLater);
}

}  // namespace

CU_TWINS(cuMemcpyPeer, cuMemcpyPeer_ptds, Peer,
         (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t n), (to, there, from, here, n))
CU_TWINS(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, PeerLater,
         (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t n, CUstream s),
         (to, there, from, here, n, s))
CU_TWINS(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, HtoD, (CUdeviceptr to, const void* from, size_t n), (to, from, n))
CU_TWINS(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, DtoH, (void* to, CUdeviceptr from, size_t n), (to, from, n))
CU_TWINS(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, DtoD, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
CU_TWINS(cuMemcpy, cuMemcpy_ptds, Copy, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
CU_TWINS(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, HtoDLater,
         (CUdeviceptr to, const void* from, size_t n, CUstream s), (to, from, n, s))
CU_TWINS(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, DtoHLater, (void* to, CUdeviceptr from, size_t n, CUstream s),
         (to, from, n, s))
CU_TWINS(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, DtoDLater,
         (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
CU_TWINS(cuMemcpyAsync, cuMemcpyAsync_ptsz, CopyLater, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s),
         (to, from, n, s))
