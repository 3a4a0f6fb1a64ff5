// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's nvidia-smi wants of a driver's library beside NVML: a table of functions, which it gets by a private
// call with a name of 16 bytes. Left out unless the build says -Dnvidia_smi=true.
//
// Provenance: nothing here comes from NVIDIA's code or documents. That the call exists and that nvidia-smi refuses to
// run without an answer was seen with a library of our own that answered nothing; NVIDIA's own mock of NVML
// (NVIDIA/k8s-test-infra, Apache-2.0) says the same. Which slots mean what is known to nobody outside, can change with
// each driver, and is not used here: every slot says that it is not supported and touches nothing of its caller's.
#include <array>
#include <cstddef>
#include <cstdint>

#include "guest-driver-shim/libnvidia-ml/api.h"

namespace {

// More than any nvidia-smi has been seen to ask for.
constexpr size_t kSlots = 512;

nvmlReturn_t NotSupportedSlot() { return NVML_ERROR_NOT_SUPPORTED; }

// The first word is the size in bytes.
const std::array<uintptr_t, kSlots> kTable = [] {
  std::array<uintptr_t, kSlots> table;
  table.fill(reinterpret_cast<uintptr_t>(&NotSupportedSlot));
  table[0] = sizeof table;
  return table;
}();

}  // namespace

NVML_API(nvmlInternalGetExportTable)(const void** out, const void* id) {
  if (out == nullptr || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = kTable.data();
  return NVML_SUCCESS;
}
