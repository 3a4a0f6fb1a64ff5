// SPDX-License-Identifier: Apache-2.0
// NVML as libnvidia-ml.so.1 exports it: NVML_API(nvmlName)(...) { ... } replaces the weak definition in
// generated/stubs.cc; the generated prototype makes the compiler refuse a wrong signature.
#pragma once

#include "guest-driver-shim/libnvidia-ml/generated/nvml_api.h"

#define NVML_API(name) extern "C" __attribute__((visibility("default"))) nvmlReturn_t name
#define NVML_TEXT(name) extern "C" __attribute__((visibility("default"))) const char* name
