// Running kernels on the soft GPU in tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/soft/soft_gpu.h"

namespace vgpud::soft {

inline std::vector<Isa> AvailableIsas() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::kSse4, Isa::kAvx2, Isa::kAvx512})
    if (CpuHas(isa)) all.push_back(isa);
  return all;
}

// Kernel parameters in declaration order, naturally aligned.
class Params {
 public:
  template <class T>
  Params& Add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* at = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), at, at + sizeof(T));
    return *this;
  }
  Params& Add(GpuVa value) { return Add(Raw(value)); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct Outcome {
  CuStatus status = CuStatus::kSuccess;
  std::string text;
  uint64_t instructions = 0;
};

class SoftMachine {
 public:
  explicit SoftMachine(Isa isa = BestIsa(), uint64_t vram = 64 << 20) : gpu(vram, isa) {}

  // Loads PTX; the reason on failure.
  Outcome Load(const std::string& ptx) {
    auto m = gpu.Load(std::as_bytes(std::span(ptx.data(), ptx.size())));
    if (!m) return {m.error().status, m.error().text, 0};
    module = std::move(*m);
    return {};
  }
  // A kernel body with `params` ("" or ".param .u64 out"): registers %r %rd %f %fd %p %rs of 40 each are there.
  Outcome LoadBody(const std::string& params, const std::string& body, const std::string& globals = "") {
    return Load(
        ".version 7.8\n.target sm_75\n.address_size 64\n" + globals + "\n.visible .entry k(" + params +
        ")\n{\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n.reg .f32 %f<40>;\n.reg .f64 %fd<40>;\n.reg .pred %p<20>;\n"
        ".reg .b16 %rs<20>;\n" +
        body + "\nret;\n}\n");
  }
  GpuVa Alloc(uint64_t bytes) {
    auto va = gpu.Alloc(bytes);
    EXPECT_TRUE(va);
    EXPECT_TRUE(gpu.Fill(*va, 0, 1, bytes));
    return *va;
  }
  template <class T>
  GpuVa Upload(const std::vector<T>& values) {
    const GpuVa va = Alloc(values.size() * sizeof(T));
    EXPECT_TRUE(gpu.CopyIn(va, std::as_bytes(std::span(values))));
    return va;
  }
  template <class T>
  std::vector<T> Download(GpuVa va, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(gpu.CopyOut(std::as_writable_bytes(std::span(values)), va));
    return values;
  }
  std::unique_ptr<GpuGrid> Launch(const std::string& kernel, const LaunchShape& shape, const Params& params) {
    const FunctionInfo* f = module->Function(kernel);
    EXPECT_NE(f, nullptr) << kernel;
    if (f == nullptr) return nullptr;
    if (f->uses_heap && !gpu.MakeHeap()) return nullptr;
    auto grid = gpu.Launch(*f, shape, params.bytes(), 48 << 10);
    EXPECT_TRUE(grid) << (grid ? "" : grid.error().text);
    return grid ? std::move(*grid) : nullptr;
  }
  // Runs to the end, in pieces of `budget`. Gives up after `most` warp instructions.
  Outcome Run(const std::string& kernel, const LaunchShape& shape, const Params& params, uint64_t budget = UINT64_MAX,
              uint64_t most = 500'000'000) {
    const auto grid = Launch(kernel, shape, params);
    if (grid == nullptr) return {CuStatus::kUnknown, "no launch", 0};
    return Finish(*grid, budget, most);
  }
  Outcome Finish(GpuGrid& grid, uint64_t budget = UINT64_MAX, uint64_t most = 500'000'000) {
    for (;;) {
      const uint64_t step = std::min(budget, most - std::min(most, grid.warp_instructions()));
      auto r = grid.Run({&word, 0}, step);
      if (!r) return {r.error().status, r.error().text, grid.warp_instructions()};
      if (*r == GpuGrid::Progress::kDone) return {CuStatus::kSuccess, "", grid.warp_instructions()};
      if (grid.warp_instructions() >= most) return {CuStatus::kLaunchTimeout, "never ends", most};
    }
  }

  SoftGpu gpu;
  std::atomic<uint32_t> word{0};
  std::unique_ptr<GpuModule> module;
};

inline std::string ReadPtx(const std::string& name) {
  std::ifstream file(std::string(TEST_PTX_DIR) + "/" + name + ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

}  // namespace vgpud::soft
