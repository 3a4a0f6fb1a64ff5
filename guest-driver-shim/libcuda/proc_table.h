// SPDX-License-Identifier: Apache-2.0
// The map behind cuGetProcAddress: which exported symbol is version v of a name.
#pragma once

namespace vgpud::cuda {

struct ProcRow {
  const char* name;
  int version;      // CUDA version that introduced this form, e.g. 12000
  bool per_thread;  // the _ptsz / _ptds twin
  void* symbol;
};

// Sorted by name; generated from cudaTypedefs.h.
extern const ProcRow kProcTable[];
extern const unsigned kProcRows;

struct ProcAnswer {
  void* symbol = nullptr;
  int query = 1;  // CUdriverProcAddressQueryResult: 0 found, 1 no such name, 2 only in newer versions
};

// The highest version <= `version` of `name`; with `per_thread` its per-thread default stream twin where one exists.
ProcAnswer FindProc(const char* name, int version, bool per_thread);

}  // namespace vgpud::cuda
