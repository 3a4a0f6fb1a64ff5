// A whole context, written out and read back. The order of the parts is the format: docs/saved-context.md.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gpu/soft/pinned_blocks.h"
#include "gpu/soft/soft_gpu.h"
#include "gpu/soft/state_stream.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMagic = 0x1a54584355504756;  // "VGPUCTX\x1a"
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostModules = 65536;

// Are `named` exactly the live ones, each once?
bool NamesAll(std::span<GpuModule* const> named, const std::vector<SoftModule*>& live) {
  const std::set<const GpuModule*> wanted(live.begin(), live.end());
  const std::set<const GpuModule*> given(named.begin(), named.end());
  return wanted == given && named.size() == live.size();
}

}  // namespace

bool SoftGpu::Fresh() const {
  return modules_.empty() && device_.arena.empty() && device_.textures.empty() && !device_.heap.ready() &&
         device_.print.bytes() == 0;
}

GpuResult<void> SoftGpu::Save(const StateSink& sink, std::span<GpuModule* const> modules,
                              std::span<GpuGrid* const> grids) {
  if (!NamesAll(modules, modules_))
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("{} modules are named to be saved, {} are loaded or one is not named", modules.size(),
                               modules_.size()));
  if (!grids.empty()) return GpuFail(CuStatus::kNotSupported, "a context with unfinished grids can't be saved yet");
  StateWriter out(sink);
  out.Put(kMagic);
  out.Put(kVersion);
  out.Put<uint32_t>(0);
  out.Put(device_.Clock());
  device_.arena.SaveBlocks(out);
  device_.heap.Save(out);
  device_.print.Save(out);
  device_.textures.Save(out);
  out.Put<uint64_t>(modules.size());
  for (const GpuModule* module : modules) static_cast<const SoftModule*>(module)->Save(out);
  out.Put<uint64_t>(grids.size());
  device_.arena.SaveContents(out);
  return out.Finish();
}

GpuResult<RestoredObjects> SoftGpu::Restore(const StateSource& source) {
  if (!Fresh()) return GpuFail(CuStatus::kInvalidValue, "a saved context is read into a fresh context only");
  StateReader in(source);
  if (in.Get<uint64_t>() != kMagic && in.ok()) return GpuFail(CuStatus::kInvalidImage, "this is no saved context");
  const auto version = in.Get<uint32_t>();
  if (in.ok() && version != kVersion)
    return GpuFail(CuStatus::kNotSupported,
                   fmt::format("saved context: its format is version {}, known is {}", version, kVersion));
  in.GetUpTo<uint32_t>(0, "flags");
  const auto clock = in.Get<uint64_t>();
  device_.clock_shift_ns = 0;
  device_.clock_shift_ns = clock - device_.Clock();
  device_.arena.LoadBlocks(in);
  PinnedBlocks pinned(device_.arena);
  device_.heap.Load(in, pinned);
  device_.print.Load(in);
  device_.textures.Load(in, device_.arena);
  RestoredObjects objects;
  const auto modules = in.GetUpTo<uint64_t>(kMostModules, "number of modules");
  for (uint64_t n = 0; n < modules && in.ok(); ++n) {
    auto module = SoftModule::Restore(in, AroundModules(), pinned);
    if (!module) return tl::unexpected(std::move(module).error());
    objects.modules.push_back(std::move(*module));
  }
  in.GetUpTo<uint64_t>(0, "number of grids");
  if (in.ok() && !pinned.all_taken()) in.Fail({CuStatus::kInvalidImage, "saved context: memory that nothing owns"});
  device_.arena.LoadContents(in);
  if (auto r = in.Finish(); !r) return tl::unexpected(std::move(r).error());
  return objects;
}

}  // namespace vgpud::soft
