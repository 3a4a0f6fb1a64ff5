// SPDX-License-Identifier: Apache-2.0
// Executable graphs are made of graphs as they are at that moment.
#include <utility>

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/executable.h"

namespace vgpud::cuda {
namespace {

// Where a program looks for what was wrong.
struct Verdict {
  int result = CUDA_GRAPH_INSTANTIATE_ERROR;
  CUgraphNode bad = nullptr;
};

CUresult Instantiate(CUgraphExec* out, CUgraph handle, uint64_t flags, Verdict* verdict) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || out == nullptr || graph->capturing || graph->moved) return CUDA_ERROR_INVALID_VALUE;
  constexpr auto kKnown =
      static_cast<uint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY |
                            CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  Body body;
  if (!MakeBody(*graph, &body, &verdict->bad)) {
    verdict->result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  // How it was uploaded is forgotten, as CUDA documents.
  const uint64_t kept = flags & ~static_cast<uint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  std::shared_ptr<Executable> executable;
  {
    MutexLock lock(graph->mutex);
    if (body.conditional && !graph->instance.expired()) return CUDA_ERROR_INVALID_VALUE;
    executable = std::make_shared<Executable>(std::move(body), graph->references, kept);
    graph->instance = executable;
  }
  *out = Executables().Add(std::move(executable));
  verdict->result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

// The calls that have room for a text too, of which there is none.
CUresult InstantiateWithLog(CUgraphExec* out, CUgraph graph, CUgraphNode* bad, char* log, size_t log_bytes) {
  Verdict verdict;
  const CUresult error = Instantiate(out, graph, 0, &verdict);
  if (bad != nullptr) *bad = verdict.bad;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return error;
}

CUresult InstantiateWithParams(DefaultStream mode, CUgraphExec* out, CUgraph graph,
                               CUDA_GRAPH_INSTANTIATE_PARAMS_st* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  params->hErrNode_out = nullptr;
  if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    const Place place = Where(mode, params->hUploadStream);
    if (place.error != CUDA_SUCCESS) return place.error;
  }
  Verdict verdict;
  const CUresult error = Instantiate(out, graph, params->flags, &verdict);
  params->result_out = verdict.result;
  params->hErrNode_out = verdict.bad;
  return error;
}

}  // namespace
}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphInstantiateWithFlags)(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  Verdict verdict;
  return Instantiate(out, graph, flags, &verdict);
}
CU_API(cuGraphInstantiate)(CUgraphExec* out, CUgraph graph, CUgraphNode* bad, char* log, size_t log_bytes) {
  return InstantiateWithLog(out, graph, bad, log, log_bytes);
}
CU_API(cuGraphInstantiate_v2)(CUgraphExec* out, CUgraph graph, CUgraphNode* bad, char* log, size_t log_bytes) {
  return InstantiateWithLog(out, graph, bad, log, log_bytes);
}
CU_TWINS(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, InstantiateWithParams,
         (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS_st* params), (out, graph, params))

CU_API(cuGraphExecGetFlags)(CUgraphExec handle, unsigned long* flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto executable = Executables().Find(handle);
  if (executable == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable->flags;
  return CUDA_SUCCESS;
}
CU_API(cuGraphExecDestroy)(CUgraphExec executable) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return Executables().Remove(executable) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
