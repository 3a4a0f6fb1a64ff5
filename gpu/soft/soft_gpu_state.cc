// SPDX-License-Identifier: Apache-2.0
// A whole context, written out and read back. The order of the parts is the format: docs/saved-context.md.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gpu/soft/code/inst.h"
#include "gpu/soft/memory/pinned_blocks.h"
#include "gpu/soft/run/grid.h"
#include "gpu/soft/run/grid_family.h"
#include "gpu/soft/soft_gpu.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMagic = 0x1a54584355504756;  // "VGPUCTX\x1a"
constexpr uint32_t kVersion = 7;
constexpr uint64_t kMostModules = 65536;
constexpr uint64_t kMostGrids = 65536;
constexpr uint64_t kMostParams = 65536;

// Are `named` exactly the live ones, each once?
bool NamesAll(std::span<GpuModule* const> named, const std::vector<SoftModule*>& live) {
  const std::set<const GpuModule*> wanted(live.begin(), live.end());
  const std::set<const GpuModule*> given(named.begin(), named.end());
  return wanted == given && named.size() == live.size();
}

enum class GridKind : uint8_t { kAlone, kFamily };

// The grid that runs; nullptr: it and all that its kernel launched have ended.
const Grid* Running(const GpuGrid* grid) {
  const auto* family = dynamic_cast<const GridFamily*>(grid);
  return family != nullptr ? family->current() : static_cast<const Grid*>(grid);
}

}  // namespace

bool SoftGpu::Fresh() const {
  return modules_.empty() && device_.arena.empty() && device_.textures.empty() && !device_.heap.ready() &&
         device_.print.bytes() == 0;
}

GpuResult<void> SoftGpu::Save(const StateSink& sink, std::span<GpuModule* const> modules,
                              std::span<GpuGrid* const> grids) {
  if (device_.arena.vram_va() != kVramVa)
    return GpuFail(CuStatus::kNotSupported, "a context whose device memory is not in the first part can't be saved");
  if (!NamesAll(modules, modules_))
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("{} modules are named to be saved, {} are loaded or one is not named", modules.size(),
                               modules_.size()));
  for (const GpuGrid* grid : grids)
    if (const Grid* running = Running(grid); running != nullptr && running->faulted())
      return GpuFail(CuStatus::kInvalidValue, "a grid that has failed can't be saved");
  if (device_.arena.shares())
    return GpuFail(CuStatus::kNotSupported, "a context whose kernels reach memory of its program can't be saved");
  if (device_.arena.mappable().any())
    return GpuFail(CuStatus::kNotSupported, "a context with memory that is mapped to addresses later can't be saved");
  if (std::any_of(modules.begin(), modules.end(),
                  [](const GpuModule* m) { return static_cast<const SoftModule*>(m)->by_function(); }))
    return GpuFail(CuStatus::kNotSupported, "a context with a module that is loaded by function can't be saved");
  StateWriter out(sink);
  out.Put(kMagic);
  out.Put(kVersion);
  out.Put(device_.capability.number);
  out.Put(device_.Clock());
  device_.arena.SaveBlocks(out);
  device_.heap.Save(out);
  device_.print.Save(out);
  device_.textures.Save(out);
  out.Put<uint64_t>(modules.size());
  for (const GpuModule* module : modules) static_cast<const SoftModule*>(module)->Save(out);
  out.Put<uint64_t>(grids.size());
  for (const GpuGrid* grid : grids) {
    const auto* family = dynamic_cast<const GridFamily*>(grid);
    out.Put(family != nullptr ? GridKind::kFamily : GridKind::kAlone);
    if (family != nullptr) {
      SaveFamily(out, *family, modules);
    } else {
      SaveGrid(out, *static_cast<const Grid*>(grid), modules);
    }
  }
  device_.arena.SaveContents(out);
  return out.Finish();
}

void SoftGpu::SaveGrid(StateWriter& out, const Grid& grid, std::span<GpuModule* const> modules) {
  const GridFacts& facts = grid.facts();
  const auto owner = std::find_if(modules.begin(), modules.end(), [&](const GpuModule* m) {
    return static_cast<const SoftModule*>(m)->program() == facts.program;
  });
  const auto& functions = facts.program->functions;
  const auto function =
      std::find_if(functions.begin(), functions.end(), [&](const auto& f) { return f.get() == &facts.function; });
  out.Put<uint64_t>(static_cast<uint64_t>(owner - modules.begin()));
  out.Put<uint64_t>(static_cast<uint64_t>(function - functions.begin()));
  for (const uint32_t extent : facts.shape.grid) out.Put(extent);
  for (const uint32_t extent : facts.shape.block) out.Put(extent);
  out.Put(facts.shape.dynamic_shared);
  out.Put<uint8_t>(facts.shape.cooperative);
  for (const uint32_t extent : facts.shape.cluster) out.Put(extent);
  if (facts.workspace) out.Put(*facts.workspace);
  out.Put<uint64_t>(facts.params.size());
  out.PutBytes(facts.params);
  grid.Save(out);
}

void SoftGpu::SaveFamily(StateWriter& out, const GridFamily& family, std::span<GpuModule* const> modules) {
  const Grid* current = family.current();
  out.Put<uint8_t>(current != nullptr);
  if (current != nullptr) SaveGrid(out, *current, modules);
  family.Save(out);
}

std::unique_ptr<GridFamily> SoftGpu::LoadFamily(StateReader& in, std::span<const std::unique_ptr<GpuModule>> modules,
                                                PinnedBlocks& pinned) {
  std::unique_ptr<Grid> current;
  if (in.GetBool("running grid of a family")) current = LoadGrid(in, modules, pinned, true);
  if (!in.ok()) return nullptr;
  auto family = MakeFamily(std::move(current));
  family->Load(in);
  return family;
}

std::unique_ptr<Grid> SoftGpu::LoadGrid(StateReader& in, std::span<const std::unique_ptr<GpuModule>> modules,
                                        PinnedBlocks& pinned, bool may_launch) {
  const auto fail = [&](const std::string& why) {
    in.Fail({CuStatus::kInvalidImage, "saved context: " + why});
    return nullptr;
  };
  const auto module = in.Get<uint64_t>();
  const auto function = in.Get<uint64_t>();
  LaunchShape shape{};
  for (uint32_t& extent : shape.grid) extent = in.Get<uint32_t>();
  for (uint32_t& extent : shape.block) extent = in.Get<uint32_t>();
  shape.dynamic_shared = in.Get<uint32_t>();
  shape.cooperative = in.GetBool("kind of a launch");
  for (uint32_t& extent : shape.cluster) extent = in.Get<uint32_t>();
  std::optional<GpuVa> workspace;
  if (shape.cooperative) workspace = GpuVa{in.Get<uint64_t>()};
  std::vector<std::byte> params(in.GetUpTo<uint64_t>(kMostParams, "bytes of parameters"));
  in.GetBytes(params);
  if (!in.ok()) return nullptr;
  if (module >= modules.size()) return fail(fmt::format("a grid of module {} of {}", module, modules.size()));
  const auto& program = static_cast<const SoftModule&>(*modules[module]).program();
  if (function >= program->functions.size() || !program->functions[function]->is_kernel)
    return fail(fmt::format("a grid of function {}, which is no kernel", function));
  const CodeFunction& code = *program->functions[function];
  if (code.launches && !may_launch) return fail("a grid whose kernel launches kernels, but not with what it launched");
  if (auto r = CheckGrid(*program, code, shape, params.size(), UINT32_MAX); !r) return fail(r.error().text);
  if (workspace && !pinned.Take(*workspace, kWorkspaceBytes)) return fail("a cooperative grid without its memory");
  auto grid =
      std::make_unique<Grid>(program, code, shape, std::span(params).first(code.info.param_bytes), device_, workspace);
  grid->Load(in);
  return grid;
}

GpuResult<RestoredObjects> SoftGpu::Restore(const StateSource& source) {
  if (!Fresh()) return GpuFail(CuStatus::kInvalidValue, "a saved context is read into a fresh context only");
  StateReader in(source);
  if (in.Get<uint64_t>() != kMagic && in.ok()) return GpuFail(CuStatus::kInvalidImage, "this is no saved context");
  const auto version = in.Get<uint32_t>();
  if (in.ok() && version != kVersion)
    return GpuFail(CuStatus::kNotSupported,
                   fmt::format("saved context: its format is version {}, known is {}", version, kVersion));
  const auto capability = in.Get<uint32_t>();
  if (in.ok() && capability != device_.capability.number)
    return GpuFail(CuStatus::kNotSupported,
                   fmt::format("saved context: it is of a GPU of compute capability {}, this one has {}; read it where "
                               "vgpud has --soft-gpu-capability {}",
                               CapabilityName(capability), device_.capability.name, CapabilityName(capability)));
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
  const auto grids = in.GetUpTo<uint64_t>(kMostGrids, "number of grids");
  for (uint64_t n = 0; n < grids && in.ok(); ++n) {
    const auto kind = in.GetUpTo<uint8_t>(static_cast<uint8_t>(GridKind::kFamily), "kind of a grid");
    if (static_cast<GridKind>(kind) == GridKind::kFamily) {
      objects.grids.push_back(LoadFamily(in, objects.modules, pinned));
    } else {
      objects.grids.push_back(LoadGrid(in, objects.modules, pinned, false));
    }
  }
  if (in.ok() && !pinned.all_taken()) in.Fail({CuStatus::kInvalidImage, "saved context: memory that nothing owns"});
  device_.arena.LoadContents(in);
  if (auto r = in.Finish(); !r) return tl::unexpected(std::move(r).error());
  return objects;
}

}  // namespace vgpud::soft
