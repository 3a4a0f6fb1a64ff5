// SPDX-License-Identifier: Apache-2.0
// The golden tests on whatever libcuda.so.1 is there: a real GPU or a VF. Declares what it needs of the CUDA driver API
// itself, so that a C++ compiler is enough:
//   c++ -std=c++20 -I REPO -o golden_cuda REPO/tests/golden/golden{,_object,_cuda,_cuda_object}.cc -ldl
// Exit status: 0 all forms that this device can have are right, 1 some are not, 2 no device or no files.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/golden/golden.h"
#include "tests/golden/golden_cuda_object.h"

namespace {

using vgpud::golden::DeviceVa;
using vgpud::golden::Form;
using vgpud::golden::Status;

constexpr char kUsage[] =
    "usage: golden_cuda [--all] FILE.golden...\n"
    "Runs the golden tests on device 0 of libcuda.so.1.\n"
    "  --all  also the forms that need a higher compute capability than the device says it has\n";

constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

struct Driver {
  Status (*cuInit)(unsigned);
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
  vgpud::golden::ObjectDriver objects;
};

bool LoadDriver(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "golden_cuda: %s\n", dlerror());
    return false;
  }
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(library, name);
    std::memcpy(&function, &symbol, sizeof(function));
    if (symbol == nullptr) std::fprintf(stderr, "golden_cuda: libcuda.so.1 has no %s\n", name);
    return symbol != nullptr;
  };
#define FIND(name) find(#name, driver.name)
  return FIND(cuInit) && FIND(cuDeviceGet) && FIND(cuDeviceGetName) && FIND(cuDeviceGetAttribute) &&
         FIND(cuDevicePrimaryCtxRetain) && FIND(cuCtxSetCurrent) && FIND(cuModuleLoadData) &&
         FIND(cuModuleGetFunction) && FIND(cuModuleUnload) && FIND(cuMemAlloc_v2) && FIND(cuMemcpyHtoD_v2) &&
         FIND(cuMemcpyDtoH_v2) && FIND(cuMemsetD8_v2) && FIND(cuLaunchKernel) && FIND(cuCtxSynchronize) &&
         FIND(cuGetErrorName) && driver.objects.Load(library);
#undef FIND
}

// Memory of the device for one form after another.
class Buffer {
 public:
  // False: no memory.
  bool Reserve(const Driver& driver, size_t bytes) {
    if (bytes <= bytes_) return true;
    bytes_ = 2 * bytes;
    return driver.cuMemAlloc_v2(&address_, bytes_) == 0;
  }
  DeviceVa address() const { return address_; }

 private:
  DeviceVa address_ = 0;
  size_t bytes_ = 0;
};

class Runner {
 public:
  explicit Runner(const Driver& driver) : driver_(driver) {}

  // "" if the form gives what it should.
  std::string Run(const Form& f) {
    const std::string ptx = vgpud::golden::PtxOf(f);
    void* module = nullptr;
    if (const Status s = driver_.cuModuleLoadData(&module, ptx.c_str())) return Failed(f, "cuModuleLoadData", s);
    std::string wrong = RunKernel(f, module);
    if (!lost_) driver_.cuModuleUnload(module);
    return wrong;
  }
  // A fault has ended the context: nothing more can run.
  bool lost() const { return lost_; }

 private:
  std::string Failed(const Form& f, const char* call, Status s) const {
    const char* name = nullptr;
    if (driver_.cuGetErrorName(s, &name) != 0 || name == nullptr) name = "?";
    return "  " + f.name + ": " + call + ": " + name + "\n";
  }

  std::string RunKernel(const Form& f, void* module) {
    void* kernel = nullptr;
    if (const Status s = driver_.cuModuleGetFunction(&kernel, module, "golden"))
      return Failed(f, "cuModuleGetFunction", s);
    const std::vector<uint64_t> in = vgpud::golden::InputOf(f);
    const uint32_t blocks = vgpud::golden::BlocksOf(f);
    const size_t threads = size_t{blocks} * vgpud::golden::kBlock;
    std::vector<uint64_t> out(threads * f.out.size());
    const size_t private_bytes = threads * vgpud::golden::kPrivateBytes;
    if (!in_.Reserve(driver_, in.size() * 8) || !out_.Reserve(driver_, (out.size() + 1) * 8) ||
        !memory_.Reserve(driver_, private_bytes))
      return "  " + f.name + ": no device memory\n";
    std::optional<vgpud::golden::CudaObject> object;
    if (f.object) {
      object.emplace(driver_.objects, *f.object);
      if (const Status s = object->Create()) return Failed(f, object->failed(), s);
    }
    uint64_t arguments[] = {in_.address(), out_.address(), memory_.address(), object ? object->handle() : 0};
    void* pointers[] = {&arguments[0], &arguments[1], &arguments[2], &arguments[3]};
    driver_.cuMemcpyHtoD_v2(in_.address(), in.data(), in.size() * 8);
    if (!out.empty()) driver_.cuMemsetD8_v2(out_.address(), 0, out.size() * 8);
    driver_.cuMemsetD8_v2(memory_.address(), 0, private_bytes);
    if (const Status s =
            driver_.cuLaunchKernel(kernel, blocks, 1, 1, vgpud::golden::kBlock, 1, 1, 0, nullptr, pointers, nullptr))
      return Failed(f, "cuLaunchKernel", s);
    Status s = driver_.cuCtxSynchronize();
    if (s == 0 && !out.empty()) s = driver_.cuMemcpyDtoH_v2(out.data(), out_.address(), out.size() * 8);
    if (s != 0) {
      lost_ = true;
      return Failed(f, "the kernel", s);
    }
    std::string wrong = vgpud::golden::Compare(f, out);
    if (f.object && !f.object->after.empty()) {
      std::vector<uint8_t> texels;
      if (const Status read = object->Read(texels)) return Failed(f, object->failed(), read);
      wrong += vgpud::golden::CompareObject(f, texels);
    }
    return wrong;
  }

  const Driver& driver_;
  Buffer in_;
  Buffer out_;
  Buffer memory_;
  bool lost_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  bool all = false;
  std::vector<Form> forms;
  for (int n = 1; n < argc; ++n) {
    const std::string argument = argv[n];
    if (argument == "--all") {
      all = true;
      continue;
    }
    std::ifstream file(argument);
    std::stringstream text;
    text << file.rdbuf();
    std::string error = file ? "" : "cannot be read";
    std::vector<Form> more;
    if (file) more = vgpud::golden::Parse(text.str(), error);
    if (!error.empty()) {
      std::fprintf(stderr, "golden_cuda: %s: %s\n%s", argument.c_str(), error.c_str(), kUsage);
      return 2;
    }
    std::move(more.begin(), more.end(), std::back_inserter(forms));
  }
  if (forms.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  Driver driver;
  if (!LoadDriver(driver)) return 2;
  int device = 0;
  int major = 0;
  int minor = 0;
  char name[256] = "";
  void* context = nullptr;
  if (driver.cuInit(0) != 0 || driver.cuDeviceGet(&device, 0) != 0 ||
      driver.cuDeviceGetName(name, sizeof(name), device) != 0 ||
      driver.cuDeviceGetAttribute(&major, kCapabilityMajor, device) != 0 ||
      driver.cuDeviceGetAttribute(&minor, kCapabilityMinor, device) != 0 ||
      driver.cuDevicePrimaryCtxRetain(&context, device) != 0 || driver.cuCtxSetCurrent(context) != 0) {
    std::fputs("golden_cuda: libcuda.so.1 gives no device\n", stderr);
    return 2;
  }
  const auto capability = static_cast<uint32_t>(10 * major + minor);
  std::printf("%s, compute capability %d.%d\n", name, major, minor);
  Runner runner(driver);
  size_t right = 0;
  size_t wrong = 0;
  size_t skipped = 0;
  for (const Form& f : forms) {
    if (!RunsOn(f, capability, all)) {
      ++skipped;
      continue;
    }
    const std::string text = runner.Run(f);
    ++(text.empty() ? right : wrong);
    std::fputs(text.c_str(), stdout);
    if (runner.lost()) {
      std::printf("the context is lost; the forms after %s did not run\n", f.name.c_str());
      break;
    }
  }
  std::printf("golden_cuda: %zu forms right, %zu wrong, %zu need another compute capability\n", right, wrong, skipped);
  return wrong == 0 ? 0 : 1;
}
