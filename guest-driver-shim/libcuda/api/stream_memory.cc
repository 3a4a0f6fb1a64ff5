// SPDX-License-Identifier: Apache-2.0
// Stream memory operations: streams that wait for a word in memory, and write one. Where the host shares the memory the
// word may be its own doing.
#include <vector>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace {

using namespace vgpud::cuda;

constexpr unsigned kFlush = 1u << 30;  // CU_STREAM_WAIT_VALUE_FLUSH, which no device here offers
constexpr unsigned kNoBarrier = 1;     // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
constexpr unsigned kMostAtOnce = 256;
constexpr unsigned kMostOfBarrier = 1;  // CU_STREAM_MEMORY_BARRIER_TYPE_GPU

// CUstreamBatchMemOpType; what is written in memory when a program fills CUstreamBatchMemOpParams.
enum class Kind : uint32_t {
  kWait32 = 1,
  kWrite32 = 2,
  kFlushRemoteWrites = 3,
  kWait64 = 4,
  kWrite64 = 5,
  kBarrier = 6
};
struct Told {
  Kind kind;
  uint32_t barrier_flags;  // of a barrier
  CUdeviceptr address;
  uint64_t value;
  uint32_t flags;
  uint32_t unused[5];
};
static_assert(sizeof(Told) == 48);

CUresult MakeWait(CUdeviceptr address, uint64_t value, uint64_t bytes, unsigned flags, Command* out) {
  if (flags & kFlush) return CUDA_ERROR_NOT_SUPPORTED;
  if (flags > VGPU_WAIT_NOR || address == 0 || address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  out->op = VGPU_OP_WAIT_VALUE;
  out->args[0] = address;
  out->args[1] = value;
  out->args[2] = bytes;
  out->args[3] = flags;
  return CUDA_SUCCESS;
}
CUresult MakeWrite(CUdeviceptr address, uint64_t value, uint64_t bytes, unsigned flags, Command* out) {
  if (flags > kNoBarrier || address == 0 || address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  out->op = VGPU_OP_WRITE_VALUE;
  out->args[0] = address;
  out->args[1] = value;
  out->args[2] = bytes;
  return CUDA_SUCCESS;
}

// One node where it is captured. Nobody waits for them, whatever CUDA_LAUNCH_BLOCKING says: only later work of the
// program may let them end.
CUresult Submit(const Place& place, std::vector<Command> commands) {
  if (place.error != CUDA_SUCCESS) return place.error;
  if ((place.current.channel->transport().info().features & VGPU_FEATURE_STREAM_VALUES) == 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  const auto post = [](const Current& at, uint32_t stream, const std::vector<Command>& all) -> CUresult {
    for (Command command : all) {
      command.stream = stream;
      if (const CUresult error = at.channel->Post(command)) return error;
    }
    return CUDA_SUCCESS;
  };
  if (const InCapture capture = Capturing(place.current, place.stream)) {
    const auto work = [post, commands](const Current& at, uint32_t stream) { return post(at, stream, commands); };
    return capture.Add(place.current, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, {work, {}});
  }
  return post(place.current, place.stream, commands);
}

template <uint64_t kBytes, class Value>
CUresult WaitValue(DefaultStream mode, CUstream stream, CUdeviceptr address, Value value, unsigned flags) {
  std::vector<Command> one(1);
  if (const CUresult error = MakeWait(address, value, kBytes, flags, one.data())) return error;
  return Submit(Where(mode, stream), std::move(one));
}
template <uint64_t kBytes, class Value>
CUresult WriteValue(DefaultStream mode, CUstream stream, CUdeviceptr address, Value value, unsigned flags) {
  std::vector<Command> one(1);
  if (const CUresult error = MakeWrite(address, value, kBytes, flags, one.data())) return error;
  return Submit(Where(mode, stream), std::move(one));
}
constexpr auto Wait32 = WaitValue<4, unsigned>;
constexpr auto Wait64 = WaitValue<8, unsigned long>;
constexpr auto Write32 = WriteValue<4, unsigned>;
constexpr auto Write64 = WriteValue<8, unsigned long>;

using Make = CUresult (*)(CUdeviceptr address, uint64_t value, uint64_t bytes, unsigned flags, Command* out);
constexpr struct {
  Kind kind;
  Make make;
  uint64_t bytes;
} kOperations[] = {
    {Kind::kWait32, &MakeWait, 4},
    {Kind::kWait64, &MakeWait, 8},
    {Kind::kWrite32, &MakeWrite, 4},
    {Kind::kWrite64, &MakeWrite, 8},
};

CUresult Understand(const Told& told, std::vector<Command>* out) {
  // What an operation has done is seen before the next one begins anyway.
  if (told.kind == Kind::kBarrier)
    return told.barrier_flags <= kMostOfBarrier ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (told.kind == Kind::kFlushRemoteWrites) return CUDA_ERROR_NOT_SUPPORTED;
  for (const auto& [kind, make, bytes] : kOperations) {
    if (told.kind != kind) continue;
    const uint64_t value = bytes == 4 ? told.value & UINT32_MAX : told.value;
    return make(told.address, value, bytes, told.flags, &out->emplace_back());
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult Batch(DefaultStream mode, CUstream stream, unsigned count, CUstreamBatchMemOpParams_union* parameters,
               unsigned flags) {
  if (count == 0 || count > kMostAtOnce || parameters == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto* const told = reinterpret_cast<const Told*>(parameters);
  std::vector<Command> commands;
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult error = Understand(told[i], &commands)) return error;
  return Submit(Where(mode, stream), std::move(commands));
}

}  // namespace

CU_TWINS(cuStreamWaitValue32, cuStreamWaitValue32_ptsz, Wait32,
         (CUstream s, CUdeviceptr at, unsigned value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz, Wait32,
         (CUstream s, CUdeviceptr at, unsigned value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWaitValue64, cuStreamWaitValue64_ptsz, Wait64,
         (CUstream s, CUdeviceptr at, unsigned long value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz, Wait64,
         (CUstream s, CUdeviceptr at, unsigned long value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWriteValue32, cuStreamWriteValue32_ptsz, Write32,
         (CUstream s, CUdeviceptr at, unsigned value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz, Write32,
         (CUstream s, CUdeviceptr at, unsigned value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWriteValue64, cuStreamWriteValue64_ptsz, Write64,
         (CUstream s, CUdeviceptr at, unsigned long value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz, Write64,
         (CUstream s, CUdeviceptr at, unsigned long value, unsigned flags), (s, at, value, flags))
CU_TWINS(cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz, Batch,
         (CUstream s, unsigned count, CUstreamBatchMemOpParams_union* all, unsigned flags), (s, count, all, flags))
CU_TWINS(cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz, Batch,
         (CUstream s, unsigned count, CUstreamBatchMemOpParams_union* all, unsigned flags), (s, count, all, flags))
