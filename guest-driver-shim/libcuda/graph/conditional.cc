// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph/conditional.h"

#include "guest-driver-shim/libcuda/driver/allocations.h"

namespace vgpud::cuda {
namespace {

struct Known {
  Mutex mutex{lock_rank::kConditions};
  std::map<unsigned long, std::weak_ptr<Condition>> conditions GUARDED_BY(mutex);
};
Known& TheKnown() {
  static auto* const known = new Known;
  return *known;
}

}  // namespace

Condition::~Condition() {
  {
    MutexLock lock(TheKnown().mutex);
    TheKnown().conditions.erase(address);
  }
  if (address == 0 || epoch != device->epoch.load()) return;
  {
    MutexLock lock(device->mutex);
    if (device->allocations.erase(address) == 0) return;
  }
  Command command;
  command.op = VGPU_OP_MEM_FREE;
  command.args[0] = address;
  device->channel->Post(command);
}

std::shared_ptr<Condition> FindCondition(unsigned long handle) {
  MutexLock lock(TheKnown().mutex);
  const auto it = TheKnown().conditions.find(handle);
  return it != TheKnown().conditions.end() ? it->second.lock() : nullptr;
}

CUresult AssignConditions(const Current& current, uint32_t stream, const Body& body) {
  for (const auto& condition : body.conditions) {
    if (!condition->assign) continue;
    Command command;
    command.op = VGPU_OP_FILL;
    command.stream = stream;
    command.args[0] = condition->address;
    command.args[1] = condition->initial;
    command.args[2] = sizeof condition->initial;
    command.args[3] = 1;
    if (const CUresult error = current.channel->Post(command)) return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphConditionalHandleCreate)
(unsigned long* out, CUgraph handle, CUcontext context, unsigned initial, unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto graph = Graphs().Find(handle);
  if (out == nullptr || graph == nullptr || (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto of = context != nullptr ? Driver::Get().contexts().Find(context) : current.context;
  if (of == nullptr || of->device != current.device) return CUDA_ERROR_INVALID_VALUE;
  auto condition = std::make_shared<Condition>();
  if (const CUresult error = AllocDevice(current, &condition->address, sizeof condition->initial)) return error;
  condition->device = current.device;
  condition->epoch = current.device->epoch.load();
  condition->initial = initial;
  condition->assign = flags != 0;
  *out = condition->address;
  {
    MutexLock lock(TheKnown().mutex);
    TheKnown().conditions[condition->address] = condition;
  }
  MutexLock lock(graph->mutex);
  graph->conditions.push_back(std::move(condition));
  return CUDA_SUCCESS;
}
