// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/driver/stream_table.h"

namespace vgpud::cuda {

// The executor answers, so that one stream too many is refused here and not met later.
CUresult CreateStreamNumber(Device* device, unsigned flags, int priority, uint32_t* number) {
  *number = device->next_stream.fetch_add(1);
  Command command;
  command.op = VGPU_OP_STREAM_CREATE;
  command.args[0] = *number;
  command.args[1] = (flags & CU_STREAM_NON_BLOCKING) != 0 ? VGPU_STREAM_NON_BLOCKING : 0;
  command.args[2] = static_cast<uint64_t>(static_cast<int64_t>(priority));
  const Completion done = device->channel->Call(command);
  if (done.status == CUDA_SUCCESS) return CUDA_SUCCESS;
  // The status may be an earlier posted operation's: then there is a stream all the same.
  // What an older host says of one too many is that the number is wrong.
  if (done.value[0] != *number) return done.status == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OUT_OF_MEMORY : done.status;
  device->channel->LeavePostedError(done.status);
  return CUDA_SUCCESS;
}

void DestroyStreamNumber(Device* device, uint32_t number) {
  Command command;
  command.op = VGPU_OP_STREAM_DESTROY;
  command.args[0] = number;
  device->channel->Post(command);
}

namespace {

// The calling thread's own default streams, one per device, made at first use.
class ThreadStreams {
 public:
  ~ThreadStreams() {
    for (const Own& own : own_) {
      if (Driver::Get().Ready() == CUDA_SUCCESS && own.epoch == own.device->epoch.load()) {
        DestroyStreamNumber(own.device, own.number);
      }
    }
  }
  CUresult Get(Device* device, uint32_t* number) {
    for (const Own& own : own_) {
      if (own.device == device && own.epoch == device->epoch.load()) {
        *number = own.number;
        return CUDA_SUCCESS;
      }
    }
    const CUresult error = CreateStreamNumber(device, 0, 0, number);
    if (error == CUDA_SUCCESS) own_.push_back({device, device->epoch.load(), *number});
    return error;
  }

 private:
  struct Own {
    Device* device;
    uint64_t epoch;
    uint32_t number;
  };
  std::vector<Own> own_;
};
thread_local ThreadStreams thread_streams;

}  // namespace

HandleTable<CUstream, Stream>& Streams() {
  static auto* const table = new HandleTable<CUstream, Stream>(0x57);
  return *table;
}

CUresult StreamNumber(const Current& current, CUstream stream, DefaultStream mode, uint32_t* number) {
  const auto value = reinterpret_cast<uint64_t>(stream);
  if (value == 2 || (value == 0 && mode == DefaultStream::kPerThread))
    return thread_streams.Get(current.device, number);
  *number = VGPU_STREAM_LEGACY;
  if (value <= 1) return CUDA_SUCCESS;
  const auto found = Streams().Find(stream);
  if (found == nullptr || found->epoch != found->device->epoch.load()) return CUDA_ERROR_INVALID_HANDLE;
  if (found->device != current.device) return CUDA_ERROR_INVALID_HANDLE;
  *number = found->id;
  return CUDA_SUCCESS;
}

Current ContextOf(CUstream stream, bool sticky) {
  const auto made = IsDefaultStream(stream) ? nullptr : Streams().Find(stream);
  return made != nullptr ? InContext(made->context, sticky) : CurrentContext(sticky);
}

Place Where(DefaultStream mode, CUstream stream) {
  Place place;
  place.current = ContextOf(stream);
  place.error = place.current.error;
  if (place.error == CUDA_SUCCESS) place.error = StreamNumber(place.current, stream, mode, &place.stream);
  return place;
}

void DropStreamsOf(CUcontext context) {
  for (const auto& stream : Streams().RemoveIf([context](const Stream& s) { return s.context == context; })) {
    if (stream->epoch == stream->device->epoch.load()) DestroyStreamNumber(stream->device, stream->id);
  }
}

}  // namespace vgpud::cuda
