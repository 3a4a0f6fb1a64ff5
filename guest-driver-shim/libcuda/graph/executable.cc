// SPDX-License-Identifier: Apache-2.0
// Executable graphs are launched, and their nodes get other parameters or are switched off.
#include "guest-driver-shim/libcuda/graph/executable.h"

#include <utility>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/graph/conditional.h"
#include "guest-driver-shim/libcuda/graph/lanes.h"

namespace vgpud::cuda {
namespace {

CUresult Launch(DefaultStream mode, CUgraphExec handle, CUstream stream) {
  Current current = CurrentContext();
  if (current.error == CUDA_ERROR_INVALID_CONTEXT) current = ContextOf(stream);
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto executable = Executables().Find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  Body body;
  {
    MutexLock lock(executable->mutex);
    body = executable->body;
  }
  if (const InCapture capture = Capturing(current, number)) {
    if (capture.error() != CUDA_SUCCESS) return capture.error();
    if (body.conditional) return CUDA_ERROR_INVALID_VALUE;
    return capture.Add(current, CU_GRAPH_NODE_TYPE_GRAPH, {nullptr, Embed(body.nodes)});
  }
  if (const CUresult error = AssignConditions(current, number, body)) return error;
  return body.lanes->Submit(current, number, body.nodes);
}

// Gives the nodes of an executable what those of a graph of the same form do. *failed: the graph's node that does not
// fit, nullptr if it is the whole.
CUresult Update(CUgraphExec handle, CUgraph from, int* result, CUgraphNode* failed) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto executable = Executables().Find(handle);
  const auto graph = Graphs().Find(from);
  if (executable == nullptr || graph == nullptr || graph->moved) return CUDA_ERROR_INVALID_VALUE;
  *failed = nullptr;
  Body fresh;
  CUgraphNode bad;
  if (!MakeBody(*graph, &fresh, &bad)) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(executable->mutex);
  if (!AdoptBody(executable->body, fresh, result, failed)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  *result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult Upload(DefaultStream, CUgraphExec handle, CUstream) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Executables().Find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool CanBeDisabled(const GraphNode& node) {
  return node.type == CU_GRAPH_NODE_TYPE_KERNEL || node.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         node.type == CU_GRAPH_NODE_TYPE_MEMSET;
}

// The child graph of an executable's node does what a graph of the same form does.
CUresult AdoptChild(GraphNode& node, const EmbeddedGraph& child) {
  if (node.body == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Body fresh;
  CUgraphNode bad;
  int why;
  auto body = std::make_shared<Body>(*node.body);
  if (!MakeBody(*child.graph, &fresh, &bad) || !AdoptBody(*body, fresh, &why, &bad)) return CUDA_ERROR_INVALID_VALUE;
  node.body = std::move(body);
  return CUDA_SUCCESS;
}

}  // namespace

HandleTable<CUgraphExec, Executable>& Executables() {
  static auto* const table = new HandleTable<CUgraphExec, Executable>(0x6c);
  return *table;
}

CUresult SetExecutableNode(CUgraphExec handle, CUgraphNode node, int type, const MakeNodeWork& make) {
  const auto executable = Executables().Find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(executable->mutex);
  return ChangeInBody(executable->body, node, [&](GraphNode& changed) -> CUresult {
    if (changed.type != type) return CUDA_ERROR_INVALID_VALUE;
    NodeWork fresh;
    if (const CUresult error = make(&changed.work, &fresh)) return error;
    if (const auto* child = std::get_if<std::shared_ptr<EmbeddedGraph>>(&fresh.params))
      return AdoptChild(changed, **child);
    changed.work = std::move(fresh);
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphExecUpdate)(CUgraphExec executable, CUgraph graph, CUgraphNode* failed, int* result) {
  if (failed == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Update(executable, graph, result, failed);
}
CU_API(cuGraphExecUpdate_v2)(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo_st* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int result = CU_GRAPH_EXEC_UPDATE_ERROR;
  info->errorFromNode = nullptr;
  const CUresult error = Update(executable, graph, &result, &info->errorNode);
  info->result = static_cast<decltype(info->result)>(result);
  return error;
}

CU_API(cuGraphNodeSetEnabled)(CUgraphExec handle, CUgraphNode node, unsigned enabled) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto executable = Executables().Find(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(executable->mutex);
  return ChangeInBody(executable->body, node, [&](GraphNode& changed) {
    if (!CanBeDisabled(changed)) return CUDA_ERROR_INVALID_VALUE;
    changed.enabled = enabled != 0;
    return CUDA_SUCCESS;
  });
}
CU_API(cuGraphNodeGetEnabled)(CUgraphExec handle, CUgraphNode node, unsigned* enabled) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto executable = Executables().Find(handle);
  if (executable == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MutexLock lock(executable->mutex);
  const auto found = FindInBody(executable->body, node);
  if (found == nullptr || !CanBeDisabled(*found)) return CUDA_ERROR_INVALID_VALUE;
  *enabled = found->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

CU_TWINS(cuGraphLaunch, cuGraphLaunch_ptsz, Launch, (CUgraphExec executable, CUstream stream), (executable, stream))
CU_TWINS(cuGraphUpload, cuGraphUpload_ptsz, Upload, (CUgraphExec executable, CUstream stream), (executable, stream))
