// SPDX-License-Identifier: Apache-2.0
// Running kernels on the soft GPU in tests.
#pragma once

#include <fmt/core.h>
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
    const size_t end = bytes_.size();
    bytes_.resize(end + sizeof(T));
    std::memcpy(bytes_.data() + end, &value, sizeof(T));
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
  explicit SoftMachine(Isa isa = BestIsa(), uint64_t vram = 64 << 20, uint32_t threads = 1,
                       const ComputeCapability& capability = kDefaultCapability)
      : gpu(vram, isa, threads, nullptr, capability) {}
  virtual ~SoftMachine() = default;

  // Loads PTX; the reason on failure.
  virtual Outcome Load(const std::string& ptx) {
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
  virtual std::unique_ptr<GpuGrid> Launch(const std::string& kernel, const LaunchShape& shape, const Params& params) {
    if (module->NeedsLoading(kernel)) {
      const auto loaded = module->LoadFunction(kernel);
      EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text);
    }
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

// A barrier of the whole grid as the CUDA headers make it, `rounds` times; each block adds 1 to its word in each round
// and then checks the word of the next block.
inline constexpr const char* kGridSync = R"(
    .shared .align 4 .b8 tile[4];
    ld.param.u64 %rd1, [out]; ld.param.u32 %r30, [rounds];
    mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd2, {%r2, %r1};
    mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; mov.u32 %r6, 0;
    mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd1, %rd3;
    add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5; mul.wide.u32 %rd4, %r7, 4; add.u64 %rd4, %rd1, %rd4;
  ROUND:
    add.u32 %r6, %r6, 1;
    setp.ne.u32 %p1, %r3, 0; @%p1 bra ARRIVED;
    st.volatile.global.u32 [%rd3], %r6;
    setp.eq.u32 %p2, %r4, 0;
    sub.u32 %r8, %r5, 1; sub.u32 %r8, 0x80000000, %r8; selp.u32 %r9, %r8, 1, %p2;
    membar.gl;
    atom.add.release.gpu.u32 %r10, [%rd2+4], %r9;
  SPIN:
    ld.acquire.gpu.u32 %r11, [%rd2+4];
    xor.b32 %r12, %r10, %r11; setp.ge.s32 %p3, %r12, 0; @%p3 bra SPIN;
  ARRIVED:
    bar.sync 0;
    ld.volatile.global.u32 %r13, [%rd4]; setp.lt.u32 %p4, %r13, %r6; @%p4 bra BAD;
    bar.sync 0;
    setp.lt.u32 %p5, %r6, %r30; @%p5 bra ROUND;
    bra END;
  BAD: trap;
  END:)";

inline std::string ReadPtx(const std::string& name) {
  std::ifstream file(fmt::format("{}/{}.ptx", TEST_PTX_DIR, name));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

}  // namespace vgpud::soft
