// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile_run.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "gpu/ptx/link.h"
#include "gpu/soft/code/inst.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMemory = 64 << 10;

TextureDesc Image(GpuVa at, TextureDesc::Shape shape, uint32_t format, bool surface) {
  TextureDesc desc;
  desc.shape = shape;
  desc.surface = surface;
  desc.width = 16;
  desc.height = shape == TextureDesc::Shape::k2d ? 8 : 1;
  desc.format = format;
  desc.channels = 4;
  desc.linear = !surface && format == 0x20;
  desc.levels.push_back({at, 1024, 8192});
  return desc;
}

}  // namespace

void CheckText(const GpuError& error) {
  if (error.text.empty()) std::abort();
}

HostileMachine::HostileMachine() : HostileMachine(Bare{}) {
  const auto allocated = gpu.Alloc(kMemory);
  if (!allocated) std::abort();
  memory = *allocated;
  for (const bool surface : {false, true}) {
    for (const auto& [shape, format] :
         {std::pair(TextureDesc::Shape::k2d, 0x20u), std::pair(TextureDesc::Shape::k1d, 0x01u)}) {
      const auto handle = gpu.CreateTexture(Image(memory, shape, format, surface));
      if (!handle) std::abort();
      handles.push_back(*handle);
    }
  }
}

LaunchShape HostileMachine::Shape(FuzzBytes& in) {
  static constexpr uint32_t kExtents[] = {1, 1, 2, 3, 31, 32, 33};
  LaunchShape shape{};
  const bool wild = in.Chance(8);
  for (uint32_t& extent : shape.grid) extent = wild ? static_cast<uint32_t>(in.Number()) : 1 + in.Pick(2);
  for (uint32_t& extent : shape.block) extent = 1;
  shape.block[0] = wild ? static_cast<uint32_t>(in.Number()) : in.Of(kExtents);
  if (wild) shape.block[1] = static_cast<uint32_t>(in.Number());
  shape.dynamic_shared = wild ? static_cast<uint32_t>(in.Number()) : in.Pick(3) * 48;
  shape.cooperative = in.Chance(8);
  return shape;
}

std::vector<std::byte> HostileMachine::Params(FuzzBytes& in, uint32_t bytes) {
  std::vector<std::byte> params(bytes);
  for (size_t at = 0; at + 8 <= params.size() && at < 64; at += 8) {
    const uint64_t values[] = {Raw(memory),
                               Raw(memory) + in.Pick(64),
                               Raw(memory) + kMemory - 4,
                               kVramVa + kFuzzVram - 8,
                               kSharedWindow,
                               kLocalWindow,
                               kParamWindow,
                               handles[in.Pick(static_cast<uint32_t>(handles.size()))],
                               0x00f0000000000000,
                               in.Number()};
    const uint64_t value = at == 0 && !in.Chance(4) ? values[0] : in.Of(values);
    std::memcpy(params.data() + at, &value, sizeof value);
  }
  return params;
}

void HostileMachine::Run(const FunctionInfo& function, FuzzBytes& in, uint64_t budget) {
  const LaunchShape shape = Shape(in);
  const uint32_t dynamic = in.Chance(8) ? static_cast<uint32_t>(in.Number()) : 48 << 10;
  const uint32_t bytes = in.Chance(8) ? std::min<uint32_t>(static_cast<uint32_t>(in.Number()), 1 << 16)
                                      : std::max(function.param_bytes, 1u);
  if (function.uses_heap && gpu.HeapBytesToMake() != 0) {
    gpu.SetHeapBytes(256 << 10);
    if (!gpu.MakeHeap()) return;
  }
  auto grid = gpu.Launch(function, shape, Params(in, bytes), dynamic);
  if (!grid) return CheckText(grid.error());
  std::atomic<uint32_t> word{0};
  const uint64_t piece = 1 + in.Pick(4096);
  while ((*grid)->warp_instructions() < budget) {
    const auto progress = (*grid)->Run({&word, 0}, piece);
    if (!progress) return CheckText(progress.error());
    if (*progress == GpuGrid::Progress::kDone) return;
    budget -= std::min<uint64_t>(budget, 64);  // also when nothing advances
  }
}

uint32_t HostileMachine::WrongLine(const std::string& text) {
  const auto line_in = [](const std::string& message) -> uint32_t {
    const size_t at = message.find("PTX line ");
    return at == message.npos ? 0 : static_cast<uint32_t>(std::strtoul(message.c_str() + at + 9, nullptr, 10));
  };
  auto module = gpu.Load(std::as_bytes(std::span(text)));
  if (!module) return line_in(module.error().text);
  if ((*module)->NeedsLoading("k"))
    if (const auto loaded = (*module)->LoadFunction("k"); !loaded) return line_in(loaded.error().text);
  const FunctionInfo* function = (*module)->Function("k");
  if (function == nullptr) return 0;
  const std::vector<std::byte> params(function->param_bytes);
  const auto grid = gpu.Launch(*function, {{1, 1, 1}, {1, 1, 1}, 0}, params, 48 << 10);
  return grid ? 0 : line_in(grid.error().text);
}

void HostileMachine::LoadAndRun(std::string_view image, FuzzBytes& in, uint64_t budget) {
  auto module = gpu.Load(std::as_bytes(std::span(image)));
  if (!module) return CheckText(module.error());
  // In the text of other kernels their names stand somewhere; "k" is the fuzzers' own.
  std::vector<std::string> names = {"k"};
  for (size_t at = 0; (at = image.find(".entry ", at)) != image.npos && names.size() < 4;) {
    at += 7;
    const size_t end = std::min(image.find_first_of("( \n\t", at), image.size());
    names.emplace_back(image.substr(at, end - at));
  }
  for (const std::string& name : names)
    if ((*module)->NeedsLoading(name)) (void)(*module)->LoadFunction(name);
  for (const std::string& name : names)
    if (const FunctionInfo* function = (*module)->Function(name)) Run(*function, in, budget);
}

void LeaveOutWhatIsWrong(std::string& text) {
  constexpr int kMostRepairs = 24;
  HostileMachine machine;
  for (int repair = 0; repair < kMostRepairs; ++repair) {
    const uint32_t line = machine.WrongLine(text);
    if (line == 0) return;
    size_t begin = 0;
    for (uint32_t n = 1; n < line && begin != text.npos; ++n) begin = text.find('\n', begin) + 1;
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool structure = text[begin] == '{' || text[begin] == '}' || text.compare(begin, 1, ".") == 0;
    if (begin == end || (structure && end - begin < 3)) return;
    text.replace(begin, end - begin, "");
  }
}

}  // namespace vgpud::soft
