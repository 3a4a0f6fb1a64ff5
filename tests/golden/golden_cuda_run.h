// SPDX-License-Identifier: Apache-2.0
// One golden form after another on a libcuda. Declares what it needs of the CUDA driver API itself.
#pragma once

#include <string>

#include "tests/golden/golden.h"
#include "tests/golden/golden_cuda_object.h"

namespace vgpud::golden {

struct Driver {
  Status (*cuInit)(unsigned);
  Status (*cuDriverGetVersion)(int*);
  Status (*cuDeviceGet)(int*, int);
  Status (*cuDeviceGetName)(char*, int, int);
  Status (*cuDeviceGetAttribute)(int*, int, int);
  Status (*cuDevicePrimaryCtxRetain)(void**, int);
  Status (*cuCtxSetCurrent)(void*);
  Status (*cuModuleLoadData)(void**, const void*);
  Status (*cuModuleGetFunction)(void**, void*, const char*);
  Status (*cuModuleUnload)(void*);
  Status (*cuMemAlloc_v2)(DeviceVa*, size_t);
  Status (*cuMemcpyHtoD_v2)(DeviceVa, const void*, size_t);
  Status (*cuMemcpyDtoH_v2)(void*, DeviceVa, size_t);
  Status (*cuMemsetD8_v2)(DeviceVa, unsigned char, size_t);
  Status (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                           void**);
  Status (*cuCtxSynchronize)();
  Status (*cuGetErrorName)(Status, const char**);
  ObjectDriver objects;

  // From `library`, a path or a name that the loader finds. False: stderr says what is missing.
  bool Load(const char* library);
};

// What became of a form.
enum class Became : uint32_t {
  kNotRun,   // nothing looked at it
  kSkipped,  // it needs another compute capability
  kRight,
  kWrong,    // other values
  kRefused,  // a call failed: the driver does not take it
  kFault,    // its kernel ended with an error, and the context with it
};
const char* Name(Became became);

struct Outcome {
  Became became = Became::kNotRun;
  uint32_t values_wrong = 0;
  std::string text;  // lines; empty where it is right
};

// Device 0 with its context, current to this thread.
struct Device {
  std::string name;
  uint32_t capability = 0;  // like 90
  int driver_version = 0;   // as cuDriverGetVersion counts
};
// Empty: `device` can be used by this process. Else what failed.
std::string OpenDevice(const Driver& driver, Device& device);

// The thread that opened the device.
class Runner {
 public:
  explicit Runner(const Driver& driver) : driver_(driver) {}
  Outcome Run(const Form& f);
  // A fault has ended the context: nothing more can run in this process.
  bool lost() const { return lost_; }

 private:
  // Memory of the device for one form after another.
  struct Buffer {
    DeviceVa address = 0;
    size_t bytes = 0;
    bool Reserve(const Driver& driver, size_t wanted);
  };
  Outcome Failed(const Form& f, const char* call, Status s, Became became = Became::kRefused) const;
  Outcome RunKernel(const Form& f, void* module);

  const Driver& driver_;
  Buffer in_, out_, memory_;
  bool lost_ = false;
};

}  // namespace vgpud::golden
