// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/soft_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "gpu/ptx/fatbin.h"
#include "gpu/soft/run/access_check.h"
#include "gpu/soft/run/grid.h"
#include "gpu/soft/run/grid_family.h"
#include "gpu/soft/run/instruction_profile.h"
#include "gpu/soft/run/launch_check.h"
#include "gpu/soft/run/occupancy.h"

namespace vgpud {
namespace soft {
namespace {

// Host memory for the state of the blocks of a cooperative grid.
constexpr uint64_t kMaxCooperativeBytes = uint64_t{2} << 30;
// Forms of instructions that a profile tells.
constexpr size_t kProfileRows = 60;

bool Asked(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

tl::unexpected<GpuError> OutOfRange(const char* what, GpuVa address, uint64_t bytes) {
  return GpuFail(CuStatus::kInvalidValue,
                 fmt::format("{} of {} bytes at {:#x} is not inside one allocation", what, bytes, Raw(address)));
}

}  // namespace

SoftGpu::~SoftGpu() {
  if (device_.profile != nullptr) device_.profile->Log(kProfileRows);
}

void SoftGpu::SetProfile() { device_.profile = std::make_shared<InstructionProfile>(); }

void SoftGpu::SetCheck() { device_.check = std::make_shared<AccessCheck>(device_.arena, device_.print); }

GpuResult<uint64_t> SoftGpu::Free(GpuVa address) {
  if (device_.check != nullptr)
    if (const auto known = device_.arena.LastUpTo(address); known && known->address == address)
      device_.check->Freed(address, known->bytes);
  const auto bytes = device_.arena.Free(address, false);
  if (!bytes)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("{:#x} is not the start of an allocation", Raw(address)));
  return *bytes;
}

GpuResult<GpuVa> SoftGpu::Share(std::span<std::byte> memory, const MemoryFile&) {
  const auto address = device_.arena.Share(memory);
  if (!address)
    return GpuFail(CuStatus::kNotSupported,
                   fmt::format("kernels can't reach {} bytes of host memory where they are", memory.size()));
  return *address;
}

GpuResult<void> SoftGpu::CopyIn(GpuVa to, std::span<const std::byte> from) {
  if (!Contains(to, from.size())) return OutOfRange("copy", to, from.size());
  if (!from.empty()) std::memcpy(device_.arena.Host(to), from.data(), from.size());
  return {};
}

GpuResult<void> SoftGpu::CopyOut(std::span<std::byte> to, GpuVa from) {
  if (!Contains(from, to.size())) return OutOfRange("copy", from, to.size());
  if (!to.empty()) std::memcpy(to.data(), device_.arena.Host(from), to.size());
  return {};
}

GpuResult<void> SoftGpu::CopyDev(GpuVa to, GpuVa from, uint64_t bytes) {
  if (!Contains(from, bytes)) return OutOfRange("copy", from, bytes);
  if (!Contains(to, bytes)) return OutOfRange("copy", to, bytes);
  if (bytes != 0) std::memmove(device_.arena.Host(to), device_.arena.Host(from), bytes);
  return {};
}

GpuResult<void> SoftGpu::Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) {
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("fill with elements of {} bytes", element_bytes));
  const uint64_t bytes = (CheckedSize(count) * element_bytes).saturated();
  if (!Contains(to, bytes)) return OutOfRange("fill", to, bytes);
  if (Raw(to) % element_bytes != 0)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("fill at {:#x} is not aligned to {}", Raw(to), element_bytes));
  std::byte* at = device_.arena.Host(to);
  if (element_bytes == 1) {
    std::memset(at, static_cast<int>(value & 0xff), count);
    return {};
  }
  for (uint64_t n = 0; n < count; ++n) std::memcpy(at + n * element_bytes, &value, element_bytes);
  return {};
}

GpuResult<uint64_t> SoftGpu::ReadWord(GpuVa from, uint32_t bytes) {
  if ((bytes != 4 && bytes != 8) || Raw(from) % bytes != 0 || !Contains(from, bytes))
    return OutOfRange("word", from, bytes);
  std::byte* at = device_.arena.Host(from);
  if (bytes == 4) return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at)).load();
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at)).load();
}

GpuResult<void> SoftGpu::WriteWord(GpuVa to, uint32_t bytes, uint64_t value) {
  if ((bytes != 4 && bytes != 8) || Raw(to) % bytes != 0 || !Contains(to, bytes)) return OutOfRange("word", to, bytes);
  std::byte* at = device_.arena.Host(to);
  if (bytes == 4) {
    std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at)).store(static_cast<uint32_t>(value));
  } else {
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at)).store(value);
  }
  return {};
}

void SoftGpu::DropCaches() {
  images_.Clear();
  device_.blocks.Drop();
}

bool SoftGpu::SetHeapBytes(uint64_t bytes) {
  if (device_.heap.ready()) return false;
  device_.heap.SetBytes(bytes);
  return true;
}

uint64_t SoftGpu::HeapBytesToMake() const { return device_.heap.ready() ? 0 : device_.heap.wanted_bytes(); }

GpuResult<void> SoftGpu::MakeHeap() {
  if (device_.heap.ready() || device_.heap.wanted_bytes() == 0) return {};
  const auto address = device_.arena.Alloc(device_.heap.wanted_bytes(), true);
  if (!address) return tl::unexpected(address.error());
  device_.heap.Give(*address, device_.heap.wanted_bytes());
  return {};
}

GpuResult<std::unique_ptr<GpuModule>> SoftGpu::Load(std::span<const std::byte> image) {
  auto texts = ptx::SelectPtx(image, device_.capability.number);
  if (!texts) return tl::unexpected(std::move(texts).error());
  for (const std::string& text : *texts) code_bytes_read_ += text.size();
  auto module = SoftModule::Make(std::move(*texts), TRY(ptx::MostRegisters(image)), AroundModules());
  if (!module) return tl::unexpected(std::move(module).error());
  return std::unique_ptr<GpuModule>(std::move(*module));
}

GpuResult<std::unique_ptr<GpuGrid>> SoftGpu::Launch(const FunctionInfo& function, const LaunchShape& shape,
                                                    std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  SoftModule::Kernel kernel;
  for (auto m = modules_.begin(); m != modules_.end() && kernel.code == nullptr; ++m) kernel = (*m)->Find(function);
  const auto& [code, program] = kernel;
  if (code == nullptr) return GpuFail(CuStatus::kInvalidHandle, "the kernel is of no loaded module");
  if (auto r = CheckGrid(*program, *code, shape, params.size(), max_dynamic_shared); !r)
    return tl::unexpected(std::move(r).error());
  std::optional<GpuVa> workspace;
  if (shape.cooperative) {
    auto address = device_.arena.Alloc(kWorkspaceBytes, true);
    if (!address) return tl::unexpected(address.error());
    std::memset(device_.arena.Host(*address), 0, kWorkspaceBytes);
    workspace = *address;
  }
  auto grid = std::make_unique<Grid>(program, *code, shape, params.first(function.param_bytes), device_, workspace);
  if (device_.check != nullptr) device_.check->Begin(*grid);
  if (!code->launches) return std::unique_ptr<GpuGrid>(std::move(grid));
  return std::unique_ptr<GpuGrid>(MakeFamily(std::move(grid)));
}

std::unique_ptr<GridFamily> SoftGpu::MakeFamily(std::unique_ptr<Grid> root) {
  if (root == nullptr) return std::make_unique<GridFamily>(device_, nullptr, nullptr);
  const auto child = [this, program = root->facts().program](
                         const CodeFunction& kernel, const LaunchShape& at,
                         std::span<const std::byte> bytes) -> std::unique_ptr<Grid> {
    auto nested = std::make_unique<Grid>(program, kernel, at, bytes, device_, std::nullopt);
    if (device_.check != nullptr) device_.check->Begin(*nested);
    return nested;
  };
  return std::make_unique<GridFamily>(device_, std::move(root), child);
}

GpuResult<void> SoftGpu::CheckGrid(const Program& program, const CodeFunction& code, const LaunchShape& shape,
                                   uint64_t param_bytes, uint32_t max_dynamic_shared) const {
  const FunctionInfo& function = code.info;
  const auto bad = [&](CuStatus status, const std::string& why) {
    return GpuFail(status, fmt::format("launch of {}: {}", function.name, why));
  };
  if (auto r = CheckLaunch(device_.capability, code, shape, max_dynamic_shared); !r) return r;
  if (param_bytes < function.param_bytes)
    return bad(CuStatus::kInvalidValue,
               fmt::format("{} bytes of parameters, the kernel has {}", param_bytes, function.param_bytes));
  if (!shape.cooperative) return {};
  const uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  const uint64_t most =
      std::min<uint64_t>(MostResident(device_.capability, function, threads, shape.dynamic_shared),
                         std::min(kMaxCooperativeBytes, device_.memory.quota()) / Grid::CtaBytes(program, code, shape));
  if (blocks > most)
    return bad(CuStatus::kCooperativeLaunchTooLarge,
               fmt::format("a cooperative grid of {} blocks of {} threads, at most {} can be resident at once", blocks,
                           threads, most));
  return {};
}

}  // namespace soft

std::unique_ptr<Gpu> MakeSoftGpu(const VramSize& vram, uint32_t threads, HostMemory* host,
                                 const ComputeCapability& capability, const ReachSpace& reach) {
  auto gpu = std::make_unique<soft::SoftGpu>(vram, soft::BestIsa(), threads, host, capability, reach);
  if (soft::Asked("VGPUD_SOFT_CHECK")) gpu->SetCheck();
  if (soft::Asked("VGPUD_SOFT_PROFILE")) gpu->SetProfile();
  return gpu;
}

}  // namespace vgpud
