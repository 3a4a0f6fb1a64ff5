// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/launcher/session.h"

#include <cstdio>
#include <cstdlib>

#include "tests/cuda/launcher/embedded_ptx.h"

namespace {

const char* PtxOf(std::string_view name) {
  for (const EmbeddedPtx& ptx : kEmbeddedPtx)
    if (name == ptx.name) return ptx.text;
  std::printf("FAILED no PTX of %.*s in this program\n", static_cast<int>(name.size()), name.data());
  std::exit(1);
}

}  // namespace

Session::Session(std::string_view name) {
  DRIVER_CHECK(Init(0));
  DRIVER_CHECK(DeviceGet(&device_, 0));
  DRIVER_CHECK(DevicePrimaryCtxRetain(&context_, device_));
  DRIVER_CHECK(CtxSetCurrent(context_));
  DRIVER_CHECK(ModuleLoadData(&module_, PtxOf(name)));
}

Session::~Session() {
  DRIVER_CHECK(ModuleUnload(module_));
  DRIVER_CHECK(DevicePrimaryCtxRelease(device_));
}

driver::Function Session::Kernel(const char* name) const {
  driver::Function kernel = nullptr;
  DRIVER_CHECK(ModuleGetFunction(&kernel, module_, name));
  return kernel;
}
