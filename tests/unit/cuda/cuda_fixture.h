// SPDX-License-Identifier: Apache-2.0
// gpu/cuda against a driver of a few calls (fake_driver.cc).
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gpu/cuda/cuda_backend.h"
#include "gpu/cuda/module/cuda_module.h"

namespace vgpud::driver {

using testing::HasSubstr;
using testing::StartsWith;

inline std::string Library() { return std::getenv("FAKE_CUDA_LIBRARY"); }

struct Told {
  explicit Told(const char* what) { ::setenv("FAKE_CUDA", what, 1); }
  ~Told() { ::unsetenv("FAKE_CUDA"); }
};

inline std::vector<std::byte> Bytes(const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  return {at, at + bytes};
}

// Standard output is the backend's: what fails is told on the other one.
class ToStderr : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    const char* file = part.file_name() != nullptr ? part.file_name() : "?";
    std::fprintf(stderr, "%s:%d: %s\n", file, part.line_number(), part.summary());
  }
};

class CudaGpuTest : public testing::Test {
 protected:
  // One for all tests: a process has one standard output.
  static CudaBackend& Backend() {
    static auto* const backend = [] {
      testing::UnitTest::GetInstance()->listeners().Append(new ToStderr);
      return CudaBackend::Open({Library(), {}}, -1)->release();
    }();
    return *backend;
  }
  void SetUp() override {
    gpu_.reset();  // and what the test program has printed
    gpu_ = Backend().MakeGpu();
  }
  ~CudaGpuTest() override {
    module_.reset();
    gpu_.reset();
  }
  std::string Printed() {
    std::string text(4096, '\0');
    bool to_stderr = true;
    text.resize(gpu_->TakePrinted(std::as_writable_bytes(std::span{text}), &to_stderr));
    return text;
  }
  // What the driver was told since this was asked last.
  static std::string Notes() {
    static const auto notes = reinterpret_cast<const char* (*)()>(
        ::dlsym(::dlopen(Library().c_str(), RTLD_NOW | RTLD_NOLOAD), "FakeCudaNotes"));
    return notes();
  }
  bool Busy() const { return gpu_->Busy(); }
  const FunctionInfo& Kernel() {
    module_ = *gpu_->Load(Bytes(".version 8.0\n", 13));
    return *module_->Function("kernel");
  }
  GpuResult<std::unique_ptr<GpuGrid>> Launch(uint32_t dynamic_shared = 0, size_t param_bytes = 12) {
    const LaunchShape shape{{1, 1, 1}, {32, 1, 1}, dynamic_shared};
    return gpu_->Launch(Kernel(), shape, std::vector<std::byte>(param_bytes), 48 << 10);
  }

  std::unique_ptr<CudaGpu> gpu_ = Backend().MakeGpu();
  std::unique_ptr<GpuModule> module_;
  std::atomic<uint32_t> word_{1};
  const StopWord go_on_{&word_, 1};
  const StopWord stopped_{&word_, 0};
};

inline constexpr char kStoppable[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 a, .param .u32 b) {\n.reg .b32 %r<2>;\nnanosleep.u32 1;\nmov.u32 %r1, "
    "%ctaid.x;\n"
    "ret;\n}\n"
    ".visible .entry whole() {\n.reg .b32 %r<2>;\nmov.u32 %r1, %envreg1;\nret;\n}\n";
// Its threads end after three instructions.
inline constexpr char kNoLoops[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 a, .param .u32 b) {\n.reg .b32 %r<2>;\nmov.u32 %r1, %ctaid.x;\n"
    "add.u32 %r1, %r1, 1;\nret;\n}\n";
// Its threads go round as often as the second parameter says.
inline constexpr char kToParameter[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 a, .param .u32 b) {\n.reg .b32 %r<3>;\n.reg .pred %p1;\n"
    "ld.param.u32 %r1, [b];\nmov.u32 %r2, 0;\nL:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra L;\n"
    "ret;\n}\n";
inline constexpr char kWaitsForAll[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 a, .param .u32 b) {\n.reg .b32 %r<2>;\nmov.u32 %r1, %envreg1;\nret;\n}\n";

class CudaTurnsTest : public CudaGpuTest {
 protected:
  GpuResult<std::unique_ptr<GpuGrid>> Launch(LaunchShape shape, const char* text = kStoppable) {
    module_ = *gpu_->Load(Bytes(text, std::strlen(text)));
    return gpu_->Launch(*module_->Function("kernel"), shape, std::vector<std::byte>(12), 100'000);
  }
  static constexpr LaunchShape kShape{{5, 4, 3}, {32, 1, 1}, 0};
};

}  // namespace vgpud::driver
