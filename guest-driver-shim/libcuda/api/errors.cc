// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "guest-driver-shim/libcuda/api.h"

namespace {

struct ErrorRow {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorRow kErrors[] = {
#include "guest-driver-shim/libcuda/generated/error_table.inc"
};

const ErrorRow* Find(CUresult code) {
  const ErrorRow* row = std::lower_bound(std::begin(kErrors), std::end(kErrors), code,
                                         [](const ErrorRow& r, CUresult c) { return r.code < c; });
  return row != std::end(kErrors) && row->code == code ? row : nullptr;
}

CUresult Text(CUresult code, const char** out, const char* ErrorRow::*field) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorRow* row = Find(code);
  *out = row != nullptr ? row->*field : nullptr;
  return row != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CU_API(cuGetErrorName)(CUresult code, const char** out) { return Text(code, out, &ErrorRow::name); }
CU_API(cuGetErrorString)(CUresult code, const char** out) { return Text(code, out, &ErrorRow::text); }
