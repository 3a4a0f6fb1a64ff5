// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden_cuda_run.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace vgpud::golden {
namespace {

// CUdevice_attribute.
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

}  // namespace

bool Driver::Load(const char* library) {
  void* const loaded = dlopen(library, RTLD_NOW);
  if (loaded == nullptr) {
    std::fprintf(stderr, "golden_cuda: %s\n", dlerror());
    return false;
  }
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(loaded, name);
    std::memcpy(&function, &symbol, sizeof(function));
    if (symbol == nullptr) std::fprintf(stderr, "golden_cuda: %s has no %s\n", library, name);
    return symbol != nullptr;
  };
#define FIND(name) find(#name, this->name)
  return FIND(cuInit) && FIND(cuDriverGetVersion) && FIND(cuDeviceGet) && FIND(cuDeviceGetName) &&
         FIND(cuDeviceGetAttribute) && FIND(cuDevicePrimaryCtxRetain) && FIND(cuCtxSetCurrent) &&
         FIND(cuModuleLoadData) && FIND(cuModuleGetFunction) && FIND(cuModuleUnload) && FIND(cuMemAlloc_v2) &&
         FIND(cuMemcpyHtoD_v2) && FIND(cuMemcpyDtoH_v2) && FIND(cuMemsetD8_v2) && FIND(cuLaunchKernel) &&
         FIND(cuCtxSynchronize) && FIND(cuGetErrorName) && objects.Load(loaded);
#undef FIND
}

const char* Name(Became became) {
  constexpr const char* kNames[] = {"not run", "skipped", "right", "wrong", "refused", "fault"};
  return kNames[static_cast<uint32_t>(became)];
}

std::string OpenDevice(const Driver& driver, Device& device) {
  int ordinal = 0, major = 0, minor = 0;
  char name[256] = "";
  void* context = nullptr;
  const auto failed = [&](const char* call, Status s) {
    const char* error = nullptr;
    if (driver.cuGetErrorName(s, &error) != 0 || error == nullptr) error = "?";
    return std::string(call) + ": " + error + " (" + std::to_string(s) + ")";
  };
#define CALL(call, ...) \
  if (const Status s = driver.call(__VA_ARGS__)) return failed(#call, s)
  CALL(cuInit, 0);
  CALL(cuDriverGetVersion, &device.driver_version);
  CALL(cuDeviceGet, &ordinal, 0);
  CALL(cuDeviceGetName, name, sizeof(name), ordinal);
  CALL(cuDeviceGetAttribute, &major, kCapabilityMajor, ordinal);
  CALL(cuDeviceGetAttribute, &minor, kCapabilityMinor, ordinal);
  CALL(cuDevicePrimaryCtxRetain, &context, ordinal);
  CALL(cuCtxSetCurrent, context);
#undef CALL
  device.name = name;
  device.capability = static_cast<uint32_t>(10 * major + minor);
  return {};
}

bool Runner::Buffer::Reserve(const Driver& driver, size_t wanted) {
  if (wanted <= bytes) return true;
  bytes = 2 * wanted;
  return driver.cuMemAlloc_v2(&address, bytes) == 0;
}

Outcome Runner::Failed(const Form& f, const char* call, Status s, Became became) const {
  const char* name = nullptr;
  if (driver_.cuGetErrorName(s, &name) != 0 || name == nullptr) name = "?";
  return {became, 0, "  " + f.name + ": " + call + ": " + name + "\n"};
}

Outcome Runner::Run(const Form& f) {
  const std::string ptx = PtxOf(f);
  void* module = nullptr;
  if (const Status s = driver_.cuModuleLoadData(&module, ptx.c_str())) return Failed(f, "cuModuleLoadData", s);
  Outcome outcome = RunKernel(f, module);
  if (!lost_) driver_.cuModuleUnload(module);
  return outcome;
}

Outcome Runner::RunKernel(const Form& f, void* module) {
  void* kernel = nullptr;
  if (const Status s = driver_.cuModuleGetFunction(&kernel, module, "golden"))
    return Failed(f, "cuModuleGetFunction", s);
  const std::vector<uint64_t> in = InputOf(f);
  const uint32_t blocks = BlocksOf(f);
  const size_t threads = size_t{blocks} * f.block;
  std::vector<uint64_t> out(threads * f.out.size());
  const size_t private_bytes = threads * kPrivateBytes;
  if (!in_.Reserve(driver_, in.size() * 8) || !out_.Reserve(driver_, (out.size() + 1) * 8) ||
      !memory_.Reserve(driver_, private_bytes))
    return {Became::kRefused, 0, "  " + f.name + ": no device memory\n"};
  std::optional<CudaObject> object;
  if (f.object) {
    object.emplace(driver_.objects, *f.object);
    if (const Status s = object->Create()) return Failed(f, object->failed(), s);
  }
  uint64_t arguments[] = {in_.address, out_.address, memory_.address, object ? object->handle() : 0};
  void* pointers[] = {&arguments[0], &arguments[1], &arguments[2], &arguments[3]};
  driver_.cuMemcpyHtoD_v2(in_.address, in.data(), in.size() * 8);
  if (!out.empty()) driver_.cuMemsetD8_v2(out_.address, 0, out.size() * 8);
  driver_.cuMemsetD8_v2(memory_.address, 0, private_bytes);
  if (const Status s = driver_.cuLaunchKernel(kernel, blocks, 1, 1, f.block, 1, 1, 0, nullptr, pointers, nullptr))
    return Failed(f, "cuLaunchKernel", s);
  Status s = driver_.cuCtxSynchronize();
  if (s == 0 && !out.empty()) s = driver_.cuMemcpyDtoH_v2(out.data(), out_.address, out.size() * 8);
  if (s != 0) {
    lost_ = true;
    return Failed(f, "the kernel", s, Became::kFault);
  }
  Outcome outcome;
  outcome.text = Compare(f, out, &outcome.values_wrong);
  if (f.object && !f.object->after.empty()) {
    std::vector<uint8_t> texels;
    if (const Status read = object->Read(texels)) return Failed(f, object->failed(), read);
    const std::string wrong = CompareObject(f, texels);
    outcome.values_wrong += !wrong.empty();
    outcome.text += wrong;
  }
  outcome.became = outcome.text.empty() ? Became::kRight : Became::kWrong;
  return outcome;
}

}  // namespace vgpud::golden
