// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: looks names up in the table of proc_table.h.
#include <algorithm>
#include <cstring>

#include "guest-driver-shim/libcuda/driver/driver.h"
#include "guest-driver-shim/libcuda/proc_table.h"

namespace vgpud::cuda {
namespace {

constexpr unsigned long kKnownFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

// `missing`: what a name is answered that there is not.
CUresult Answer(const char* name, void** function, int version, unsigned long flags, int* status, CUresult missing) {
  if (name == nullptr || function == nullptr || (flags & ~kKnownFlags) != 0 || (flags & kKnownFlags) == kKnownFlags) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // By then the function may have other arguments.
  if (version > kDriverVersion) return CUDA_ERROR_INVALID_VALUE;
  const ProcAnswer answer = FindProc(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  *function = answer.symbol;
  if (status != nullptr) *status = answer.query;
  return answer.symbol != nullptr ? CUDA_SUCCESS : missing;
}

}  // namespace

ProcAnswer FindProc(const char* name, int version, bool per_thread) {
  const ProcRow* end = kProcTable + kProcRows;
  const ProcRow* row =
      std::lower_bound(kProcTable, end, name, [](const ProcRow& r, const char* n) { return strcmp(r.name, n) < 0; });
  const ProcRow* plain = nullptr;
  const ProcRow* twin = nullptr;
  bool known = false;
  for (; row != end && strcmp(row->name, name) == 0; ++row) {
    known = true;
    if (row->version > version) continue;
    const ProcRow*& best = row->per_thread ? twin : plain;
    if (best == nullptr || row->version > best->version) best = row;
  }
  const ProcRow* best = per_thread && twin != nullptr ? twin : plain;
  if (best != nullptr) return {best->symbol, CU_GET_PROC_ADDRESS_SUCCESS};
  return {nullptr, known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
}

}  // namespace vgpud::cuda

using vgpud::cuda::Answer;

// The older form has only its result to tell with.
CU_API(cuGetProcAddress)(const char* name, void** function, int version, unsigned long flags) {
  return Answer(name, function, version, flags, nullptr, CUDA_ERROR_NOT_FOUND);
}

CU_API(cuGetProcAddress_v2)(const char* name, void** function, int version, unsigned long flags, int* status) {
  return Answer(name, function, version, flags, status, CUDA_SUCCESS);
}
