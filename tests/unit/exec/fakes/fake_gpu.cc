// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/exec/fakes/fake_gpu.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <sstream>

namespace vgpud::exec {
namespace {

struct FakeFunction : FunctionInfo {
  uint64_t steps = 0;
  bool fault = false;
};

class FakeModule : public GpuModule {
 public:
  explicit FakeModule(std::shared_ptr<FakeGpu::Script> script) : script_(std::move(script)) {}
  std::map<std::string, std::unique_ptr<FakeFunction>, std::less<>> functions;
  std::map<std::string, Global, std::less<>> globals;

  const FunctionInfo* Function(std::string_view name) const override {
    const auto it = functions.find(name);
    return it == functions.end() || NeedsLoading(name) ? nullptr : it->second.get();
  }
  bool NeedsLoading(std::string_view name) const override {
    return script_->load_function != nullptr && functions.count(name) != 0 && loaded_.count(name) == 0;
  }
  GpuResult<uint64_t> LoadFunction(std::string_view name) override {
    auto read = script_->load_function();
    if (read) loaded_.emplace(name);
    return read;
  }
  GpuResult<Global> FindGlobal(std::string_view name) const override {
    const auto it = globals.find(name);
    if (it == globals.end()) return GpuFail(CuStatus::kNotFound, "no global");
    return it->second;
  }
  uint32_t function_count() const override { return static_cast<uint32_t>(functions.size()); }
  uint32_t global_count() const override { return static_cast<uint32_t>(globals.size()); }
  std::vector<std::string> FunctionNames() const override {
    std::vector<std::string> names;
    for (const auto& [name, function] : functions) names.push_back(name);
    return names;
  }
  uint64_t vram_bytes() const override {
    uint64_t sum = 0;
    for (const auto& [name, global] : globals) sum += global.bytes;
    return sum;
  }

 private:
  const std::shared_ptr<FakeGpu::Script> script_;
  std::set<std::string, std::less<>> loaded_;
};

class FakeGrid : public GpuGrid {
 public:
  FakeGrid(FakeGpu& gpu, const FakeFunction& function, uint64_t address)
      : gpu_(gpu), function_(function), address_(address) {
    ++gpu_.script().live_grids;
  }
  ~FakeGrid() override {
    --gpu_.script().live_grids;
    if (gpu_.script().on_grid_over) gpu_.script().on_grid_over();
  }
  uint64_t held_bytes() const override { return gpu_.script().held_bytes; }
  uint64_t short_of() const override { return gpu_.script().block_bytes; }
  bool holds_blocks() const override { return held_; }

  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override {
    if (const uint64_t need = gpu_.script().block_bytes; need != 0 && !held_) {
      if (gpu_.script().no_blocks || !gpu_.script().memory->Take(need)) return Progress::kShort;
      block_ = HostMemoryPart(*gpu_.script().memory, need);
      held_ = true;
    }
    if (gpu_.script().no_memory) throw std::bad_alloc();
    for (uint64_t i = 0; i < budget; ++i) {
      if (stop.Stopped()) return Progress::kStopped;
      if (gpu_.script().on_touch) gpu_.script().on_touch();
      if (gpu_.script().on_step) gpu_.script().on_step();
      if (gpu_.script().trip != nullptr) gpu_.script().trip->Count();
      if (++step_ != function_.steps) continue;
      if (function_.fault) return GpuFail(CuStatus::kIllegalAddress, "fake kernel touched nothing");
      if (gpu_.script().keep_log) gpu_.script().log.push_back(function_.name);
      if (address_ == 0) return Progress::kDone;
      std::byte* at = gpu_.At(GpuVa{address_}, 8);
      if (at == nullptr) return GpuFail(CuStatus::kIllegalAddress, "fake kernel's address");
      uint64_t value;
      std::memcpy(&value, at, 8);
      ++value;
      std::memcpy(at, &value, 8);
      return Progress::kDone;
    }
    return Progress::kYield;
  }
  uint64_t warp_instructions() const override { return step_; }
  const std::string& name() const { return function_.name; }

 private:
  FakeGpu& gpu_;
  const FakeFunction& function_;
  uint64_t address_;
  uint64_t step_ = 0;
  bool held_ = false;
  HostMemoryPart block_;
};

}  // namespace

Gpu::DeviceInfo FakeGpu::Info() const {
  DeviceInfo info{.name = "fake", .attributes = std::vector<int32_t>(200)};
  info.attributes[97] = 64 * 1024;
  return info;
}

std::byte* FakeGpu::At(GpuVa address, uint64_t bytes) const {
  if (script_->on_touch) script_->on_touch();
  if (auto shared = shared_.upper_bound(Raw(address)); shared != shared_.begin()) {
    const auto& [begin, memory] = *--shared;
    const uint64_t offset = Raw(address) - begin;
    if (offset < memory.size()) return bytes <= memory.size() - offset ? memory.data() + offset : nullptr;
  }
  auto it = memory_.upper_bound(Raw(address));
  if (it == memory_.begin()) return nullptr;
  --it;
  const uint64_t offset = Raw(address) - it->first;
  if (offset > it->second.size() || bytes > it->second.size() - offset) return nullptr;
  return it->second.data() + offset;
}

GpuResult<GpuVa> FakeGpu::Share(std::span<std::byte> memory, const MemoryFile&) {
  if (!script_->shares) return GpuFail(CuStatus::kNotSupported, "shares nothing");
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  shared_[address] = memory;
  return GpuVa{address};
}

void FakeGpu::Unshare(std::span<std::byte> memory) { shared_.erase(reinterpret_cast<uint64_t>(memory.data())); }

GpuResult<GpuVa> FakeGpu::Alloc(uint64_t bytes) {
  if (script_->no_memory) throw std::bad_alloc();
  if (bytes == 0) return GpuFail(CuStatus::kInvalidValue, "Alloc(0)");
  const uint64_t address = next_;
  next_ += AllocationBytes(bytes) + 4096;
  memory_[address].resize(bytes);
  return GpuVa{address};
}

GpuResult<uint64_t> FakeGpu::Free(GpuVa address) {
  const auto it = memory_.find(Raw(address));
  if (it == memory_.end()) return GpuFail(CuStatus::kInvalidValue, "Free of nothing");
  const uint64_t bytes = AllocationBytes(it->second.size());
  memory_.erase(it);
  return bytes;
}

GpuResult<void> FakeGpu::CopyIn(GpuVa to, std::span<const std::byte> from) {
  std::byte* at = At(to, from.size());
  if (at == nullptr) return GpuFail(CuStatus::kInvalidValue, "CopyIn");
  std::memcpy(at, from.data(), from.size());
  return {};
}

GpuResult<void> FakeGpu::CopyOut(std::span<std::byte> to, GpuVa from) {
  const std::byte* at = At(from, to.size());
  if (at == nullptr) return GpuFail(CuStatus::kInvalidValue, "CopyOut");
  std::memcpy(to.data(), at, to.size());
  return {};
}

GpuResult<void> FakeGpu::CopyDev(GpuVa to, GpuVa from, uint64_t bytes) {
  std::byte* dst = At(to, bytes);
  const std::byte* src = At(from, bytes);
  if (dst == nullptr || src == nullptr) return GpuFail(CuStatus::kInvalidValue, "CopyDev");
  std::memmove(dst, src, bytes);
  return {};
}

GpuResult<void> FakeGpu::Fill(GpuVa to, uint32_t value, uint32_t element_bytes, uint64_t count) {
  std::byte* at = At(to, count * element_bytes);
  if (at == nullptr) return GpuFail(CuStatus::kInvalidValue, "Fill");
  for (uint64_t i = 0; i < count; ++i) std::memcpy(at + i * element_bytes, &value, element_bytes);
  return {};
}

GpuResult<uint64_t> FakeGpu::CreateMappable(uint64_t bytes) {
  const uint64_t number = mappable_.size() + 1;
  mappable_[number] = bytes;
  return number;
}

GpuResult<uint64_t> FakeGpu::ReleaseMappable(uint64_t block) {
  const auto it = mappable_.find(block);
  if (it == mappable_.end()) return GpuFail(CuStatus::kInvalidHandle, "no memory");
  const uint64_t bytes = it->second;
  mappable_.erase(it);
  return bytes;
}

// What it was told to do.
GpuResult<void> FakeGpu::MapMemory(uint64_t block, uint64_t offset, GpuVa to, uint64_t bytes) {
  if (mappable_.count(block) == 0) return GpuFail(CuStatus::kInvalidHandle, "no memory");
  script_->log.push_back("map " + std::to_string(block) + " " + std::to_string(offset) + " " + std::to_string(Raw(to)) +
                         " " + std::to_string(bytes));
  return {};
}

GpuResult<void> FakeGpu::UnmapMemory(GpuVa at, uint64_t bytes) {
  script_->log.push_back("unmap " + std::to_string(Raw(at)) + " " + std::to_string(bytes));
  return {};
}

GpuResult<uint64_t> FakeGpu::ReadWord(GpuVa from, uint32_t bytes) {
  const std::byte* at = At(from, bytes);
  if (at == nullptr) return GpuFail(CuStatus::kInvalidValue, "no word");
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

GpuResult<void> FakeGpu::WriteWord(GpuVa to, uint32_t bytes, uint64_t value) {
  std::byte* at = At(to, bytes);
  if (at == nullptr) return GpuFail(CuStatus::kInvalidValue, "no word");
  std::memcpy(at, &value, bytes);
  return {};
}

GpuResult<uint64_t> FakeGpu::CreateTexture(const TextureDesc& desc) {
  if (desc.levels.empty() || At(desc.levels[0].address, desc.width) == nullptr)
    return GpuFail(CuStatus::kInvalidValue, "the fake GPU has no such memory");
  const uint64_t handle = script_->textures.size() + 1;
  script_->textures[handle] = desc;
  return handle;
}

uint64_t FakeGpu::TextureBytes(const TextureDesc& desc) const { return desc.surface ? script_->surface_bytes : 0; }

GpuResult<uint64_t> FakeGpu::DestroyTexture(uint64_t handle) {
  const auto found = script_->textures.find(handle);
  if (found == script_->textures.end()) return GpuFail(CuStatus::kInvalidHandle, "the fake GPU has no such texture");
  const uint64_t bytes = TextureBytes(found->second);
  script_->textures.erase(found);
  return bytes;
}

GpuResult<std::unique_ptr<GpuModule>> FakeGpu::Load(std::span<const std::byte> image) {
  if (script_->on_load) script_->on_load();
  const auto write = [&] {
    if (script_->on_managed) script_->on_managed();
    std::memset(At(managed_.address, managed_.bytes), 7, managed_.bytes);
  };
  if (const uint64_t managed = managed_.bytes; managed != 0 && !managed_.there(write))
    return GpuFail(CuStatus::kInvalidValue, "the memory for managed variables has gone");
  script_->code_bytes_read += image.size();
  auto module = std::make_unique<FakeModule>(script_);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name, extra;
    uint64_t number = 0;
    words >> kind >> name >> number >> extra;
    if (kind == "kernel") {
      auto function = std::make_unique<FakeFunction>();
      function->name = name;
      function->params = {{0, 8}};
      function->param_bytes = 8;
      function->steps = name == "endless" ? 0 : std::max<uint64_t>(number, 1);
      function->fault = extra == "fault";
      function->uses_heap = extra == "heap";
      module->functions[name] = std::move(function);
    } else if (kind == "global") {
      module->globals[name] = {*Alloc(number), number};
    } else {
      return GpuFail(CuStatus::kInvalidPtx, "fake image: " + line);
    }
  }
  return std::unique_ptr<GpuModule>(std::move(module));
}

size_t FakeGpu::TakePrinted(std::span<std::byte> out, bool* to_stderr) {
  const size_t bytes = std::min(out.size(), script_->printed.size());
  std::memcpy(out.data(), script_->printed.data(), bytes);
  script_->printed.erase(0, bytes);
  *to_stderr = false;
  return bytes;
}

GpuResult<void> FakeGpu::EncodeTensorMap(vgpu_tensor_map_request& request) {
  script_->tensor_maps.push_back(request);
  if (request.kind == 9) return GpuFail(CuStatus::kInvalidValue, "no map of kind 9");
  std::memset(request.map, 0x5a, sizeof request.map);
  return {};
}

bool FakeGpu::SetHeapBytes(uint64_t bytes) {
  if (!script_->heap_made) script_->heap = bytes;
  return !script_->heap_made;
}

// All rooms are of one size in tests.
bool FakeGpu::HasRoom(std::span<const uint64_t> each) const {
  return script_->rooms.size() >= each.size() - static_cast<size_t>(std::count(each.begin(), each.end(), 0u));
}

GpuResult<void> FakeGpu::MakeRoom(uint64_t bytes) {
  if (script_->rooms_refused > 0) {
    --script_->rooms_refused;
    return GpuFail(CuStatus::kOutOfMemory, "the card has none");
  }
  script_->rooms.push_back(bytes);
  return {};
}

uint64_t FakeGpu::DropRoom() {
  uint64_t bytes = 0;
  for (const uint64_t room : script_->rooms) bytes += RoomBytes(room);
  script_->rooms.clear();
  return bytes;
}

GpuResult<void> FakeGpu::MakeHeap() {
  script_->heap_made = true;
  return {};
}

GpuResult<std::unique_ptr<GpuGrid>> FakeGpu::Launch(const FunctionInfo& function, const LaunchShape& shape,
                                                    std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  if (shape.block[0] == 0) return GpuFail(CuStatus::kInvalidValue, "empty block");
  if (shape.dynamic_shared > max_dynamic_shared) return GpuFail(CuStatus::kLaunchOutOfResources, "shared memory");
  uint64_t address = 0;
  if (params.size() >= 8) std::memcpy(&address, params.data(), 8);
  return std::unique_ptr<GpuGrid>(
      std::make_unique<FakeGrid>(*this, static_cast<const FakeFunction&>(function), address));
}

bool FakeGpu::LaunchBehind(std::unique_ptr<GpuGrid>& grid, GpuGrid& before, const FunctionInfo& function,
                           const LaunchShape& shape, std::span<const std::byte> params, uint32_t max_dynamic_shared) {
  if (!script_->launches_behind) return false;
  if (grid != nullptr) return true;
  auto launched = Launch(function, shape, params, max_dynamic_shared);
  if (!launched) return false;
  grid = std::move(*launched);
  script_->behind.push_back(function.name + " behind " + static_cast<FakeGrid&>(before).name());
  return true;
}

}  // namespace vgpud::exec
