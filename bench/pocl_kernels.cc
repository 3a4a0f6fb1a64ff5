// SPDX-License-Identifier: Apache-2.0
#include "bench/pocl_kernels.h"

#if defined(VGPUD_HAVE_OPENCL)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "bench/ptx_kernels.h"

namespace vgpud::bench {
namespace {

void Check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) Die(std::string("PoCL: ") + what + " failed with " + std::to_string(status));
}

std::string TextOf(cl_device_id device, cl_device_info info) {
  char text[1024] = {};
  Check(clGetDeviceInfo(device, info, sizeof text - 1, text, nullptr), "clGetDeviceInfo");
  return text;
}

// The first CPU of the platform that calls itself portable.
cl_device_id FindPocl(std::string& why) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS || count == 0) {
    why = "there is no OpenCL platform here (Debian: pocl-opencl-icd)";
    return nullptr;
  }
  for (cl_uint n = 0; n < count && n < 16; ++n) {
    char name[256] = {};
    clGetPlatformInfo(platforms[n], CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
    cl_device_id device = nullptr;
    if (std::string_view(name).find("Portable Computing Language") != std::string_view::npos &&
        clGetDeviceIDs(platforms[n], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS)
      return device;
  }
  why = "none of the OpenCL platforms here is PoCL (Debian: pocl-opencl-icd)";
  return nullptr;
}

class Pocl final : public PoclKernels {
 public:
  explicit Pocl(cl_device_id device) : device_(device) {
    cl_int status = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    Check(status, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device, 0, &status);
    Check(status, "clCreateCommandQueue");
    std::ifstream file(VGPUD_POCL_SOURCE);
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    const char* source = text.c_str();
    const size_t length = text.size();
    program_ = clCreateProgramWithSource(context_, 1, &source, &length, &status);
    Check(status, "clCreateProgramWithSource");
    if (clBuildProgram(program_, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) Die("PoCL: " + BuildLog());
    const auto ones = [this](size_t words) { return Buffer(words); };
    Add("vectoradd", {RoundUp(kVectorCount, 256), 1}, {256, 1}, 2)
        .With(ones(kVectorCount))
        .With(ones(kVectorCount))
        .With(ones(kVectorCount))
        .With(kVectorCount);
    Add("matmul", {kColumns, kRows}, {16, 16}, 2)
        .With(ones(kRows * kDepth))
        .With(ones(kDepth * kColumns))
        .With(ones(kRows * kColumns))
        .With(kColumns)
        .With(kDepth);
    Add("reduction", {kReduceBlocks * 256, 1}, {256, 1}, 3)
        .With(ones(kReduceCount))
        .With(ones(kReduceCount))
        .With(kReduceCount)
        .With(ones(16))
        .With(ones(kReduceBlocks));
    Add("collatz", {RoundUp(kCollatzCount, 128), 1}, {128, 1}, 0).With(ones(kCollatzCount)).With(kCollatzCount);
  }
  std::string Name() const override {
    return TextOf(device_, CL_DEVICE_VERSION) + ", " + TextOf(device_, CL_DEVICE_NAME);
  }
  void Run(const std::string& name) override {
    const Kernel& k = kernels_.at(name);
    Check(clEnqueueNDRangeKernel(queue_, k.kernel, 2, nullptr, k.global, k.local, 0, nullptr, nullptr), name.c_str());
    Check(clFinish(queue_), "clFinish");
  }
  std::vector<uint32_t> Output(const std::string& name, size_t words) override {
    std::vector<uint32_t> out(words);
    const Kernel& k = kernels_.at(name);
    Check(clEnqueueReadBuffer(queue_, k.buffers.at(k.output), CL_TRUE, 0, words * 4, out.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    return out;
  }

 private:
  struct Kernel {
    cl_kernel kernel = nullptr;
    size_t global[2];
    size_t local[2];
    cl_uint output = 0;  // argument
    cl_uint next = 0;
    std::map<cl_uint, cl_mem> buffers{};
    Kernel& With(cl_mem buffer) {
      buffers[next] = buffer;
      Check(clSetKernelArg(kernel, next++, sizeof buffer, &buffer), "clSetKernelArg");
      return *this;
    }
    Kernel& With(uint32_t value) {
      Check(clSetKernelArg(kernel, next++, sizeof value, &value), "clSetKernelArg");
      return *this;
    }
  };
  static size_t RoundUp(size_t v, size_t to) { return (v + to - 1) / to * to; }
  Kernel& Add(const char* name, const std::pair<size_t, size_t>& global, const std::pair<size_t, size_t>& local,
              cl_uint output) {
    cl_int status = CL_SUCCESS;
    Kernel k{
        clCreateKernel(program_, name, &status), {global.first, global.second}, {local.first, local.second}, output};
    Check(status, name);
    return kernels_[name] = std::move(k);
  }
  std::string BuildLog() const {
    std::string log(16384, '\0');
    size_t bytes = 0;
    clGetProgramBuildInfo(program_, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), &bytes);
    return VGPUD_POCL_SOURCE " does not compile: " + log.substr(0, bytes);
  }
  // Of the float 1.0.
  cl_mem Buffer(size_t words) {
    const std::vector<float> ones(words, 1.0f);
    cl_int status = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words * 4,
                                   const_cast<float*>(ones.data()), &status);
    Check(status, "clCreateBuffer");
    return buffer;
  }

  cl_device_id device_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace

std::unique_ptr<PoclKernels> PoclKernels::Make(std::string& why) {
  ::setenv("POCL_MAX_PTHREAD_COUNT", "1", 1);
  cl_device_id device = FindPocl(why);
  return device != nullptr ? std::make_unique<Pocl>(device) : nullptr;
}

}  // namespace vgpud::bench

#else

namespace vgpud::bench {

std::unique_ptr<PoclKernels> PoclKernels::Make(std::string& why) {
  why =
      "this was built without OpenCL (Debian: ocl-icd-opencl-dev and pocl-opencl-icd; then meson setup --reconfigure)";
  return nullptr;
}

}  // namespace vgpud::bench

#endif
