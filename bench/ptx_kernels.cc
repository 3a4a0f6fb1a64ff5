// SPDX-License-Identifier: Apache-2.0
#include "bench/ptx_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>

namespace vgpud::bench {

void Die(const std::string& why) {
  std::fprintf(stderr, "ptx_bench: %s\n", why.c_str());
  std::exit(1);
}

Machine::Machine(const std::string& folder, const std::string& kernel, uint32_t threads)
    : gpu_(256 << 20, soft::BestIsa(), threads) {
  std::ifstream file(folder + "/" + kernel + ".ptx");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  auto loaded = gpu_.Load(std::as_bytes(std::span(text.data(), text.size())));
  if (!loaded) Die(kernel + ": " + loaded.error().text);
  module_ = std::move(*loaded);
  function_ = module_->Function(kernel);
  if (function_ == nullptr) Die("no kernel " + kernel);
  const auto input = [&](uint64_t words) { return Alloc(words * 4); };
  const auto output = [&](uint64_t words) { return output_ = Alloc(words * 4); };
  if (kernel == "vectoradd") {
    shape_ = {{(kVectorCount + 255) / 256, 1, 1}, {256, 1, 1}, 0};
    params_ = {input(kVectorCount), input(kVectorCount), output(kVectorCount), kVectorCount};
  } else if (kernel == "matmul") {
    shape_ = {{kColumns / 16, kRows / 16, 1}, {16, 16, 1}, 0};
    params_ = {input(kRows * kDepth), input(kDepth * kColumns), output(kRows * kColumns),
               kColumns | uint64_t{kDepth} << 32};
  } else if (kernel == "reduction") {
    shape_ = {{kReduceBlocks, 1, 1}, {256, 1, 1}, 0};
    params_ = {input(kReduceCount), input(kReduceCount), kReduceCount, output(16)};
  } else if (kernel == "collatz") {
    shape_ = {{(kCollatzCount + 127) / 128, 1, 1}, {128, 1, 1}, 0};
    params_ = {output(kCollatzCount), kCollatzCount};
  } else {
    Die("no sizes for kernel " + kernel);
  }
}

uint64_t Machine::Alloc(uint64_t bytes) {
  auto va = gpu_.Alloc(bytes);
  if (!va) Die(va.error().text);
  if (auto r = gpu_.Fill(*va, 0x3f800000, 4, bytes / 4); !r) Die(r.error().text);
  return Raw(*va);
}

std::unique_ptr<GpuGrid> Machine::Launch() {
  auto grid = gpu_.Launch(*function_, shape_, std::as_bytes(std::span(params_)), 49152);
  if (!grid) Die(grid.error().text);
  return std::move(*grid);
}

void Machine::Finish(GpuGrid& grid) const {
  for (;;) {
    auto r = grid.Run({&word_, 0}, UINT64_MAX);
    if (!r) Die(r.error().text);
    if (*r == GpuGrid::Progress::kDone) return;
  }
}

Machine::Count Machine::CountInstructions() {
  const auto grid = Launch();
  auto& counter = static_cast<soft::Grid&>(*grid);
  counter.CountThreads();
  Finish(counter);
  return {counter.warp_instructions(), counter.thread_instructions()};
}

std::vector<uint32_t> Machine::Output(size_t words) {
  std::vector<uint32_t> out(words);
  if (auto r = gpu_.CopyOut(std::as_writable_bytes(std::span(out)), GpuVa{output_}); !r) Die(r.error().text);
  return out;
}

}  // namespace vgpud::bench
