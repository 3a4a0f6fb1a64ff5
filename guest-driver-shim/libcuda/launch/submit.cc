// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/launch/submit.h"

#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace vgpud::cuda {
namespace {

int NodeType(uint32_t op) {
  if (op == VGPU_OP_LAUNCH) return CU_GRAPH_NODE_TYPE_KERNEL;
  return op == VGPU_OP_FILL ? CU_GRAPH_NODE_TYPE_MEMSET : CU_GRAPH_NODE_TYPE_MEMCPY;
}

}  // namespace

CUresult Enqueue(const Current& current, const Command& command, std::span<const std::byte> payload) {
  if (const InCapture capture = Capturing(current, command.stream)) {
    const std::vector<std::byte> bytes(payload.begin(), payload.end());
    const auto submit = [command, bytes](const Current& at, uint32_t stream) {
      Command mine = command;
      mine.stream = stream;
      return Enqueue(at, mine, bytes);
    };
    return capture.Add(current, NodeType(command.op), {submit, {}});
  }
  if (command.op >= VGPU_OP_LAUNCH && command.op <= VGPU_OP_FILL) {
    if (const CUresult error = PublishManaged(current)) return error;
  }
  if (!Driver::Get().launch_blocking()) return current.channel->Post(command, payload);
  const CUresult status = current.channel->Call(command, payload).status;
  return status != CUDA_SUCCESS ? status : FetchManaged(current, false);
}

CUresult SyncStream(const Current& current, uint32_t number) {
  if (const CUresult error = RefuseInCapture(current, number)) return error;
  Command command;
  command.op = VGPU_OP_STREAM_SYNC;
  command.stream = number;
  const uint64_t before = current.channel->AllWork();
  const CUresult status = current.channel->Call(command).status;
  if (status == CUDA_SUCCESS && number == VGPU_STREAM_LEGACY) current.channel->LegacyStreamWasDone(before);
  return status;
}

}  // namespace vgpud::cuda
