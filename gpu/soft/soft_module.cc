// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/soft_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "gpu/soft/decode/by_function.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMaxConstBytes = 64 << 10;
// What each function of a module costs for each kernel that is loaded by itself, in bytes of PTX.
constexpr uint64_t kHeaderCost = 128;

// What a text was made for must be what the device is, or something that it can run as well.
GpuResult<void> CheckTargets(const ModuleImage& image, const ComputeCapability& capability) {
  for (const ptx::Target& target : image.targets) {
    if (ptx::RunsOn(target, capability.number)) continue;
    std::string runs_there;
    for (const ComputeCapability& other : kComputeCapabilities)
      if (runs_there.empty() && ptx::RunsOn(target, other.number))
        runs_there = fmt::format(", or use a vgpud with --soft-gpu-capability {}", other.name);
    return GpuFail(CuStatus::kInvalidPtx,
                   fmt::format("the PTX is for {}, which a GPU of compute capability {} can't run; compile for "
                               "compute_{}{}",
                               NameOf(target), capability.name, capability.number, runs_there));
  }
  return {};
}

// Bytes of a variable that are written while its memory is held.
constexpr uint64_t kWrittenAtOnce = 1 << 20;

// `init`, cut to `bytes`, and zeroes behind it; `there`: nullptr, or how to write (ModuleMemory::PlaceManaged). False:
// the memory has gone.
bool Write(std::byte* at, uint64_t bytes, std::span<const std::byte> init, const ModuleMemory::WhileThere* there) {
  for (uint64_t done = 0, part = 0; done < bytes; done += part) {
    part = std::min(kWrittenAtOnce, bytes - done);
    const uint64_t given = std::min<uint64_t>(part, init.size() - std::min<uint64_t>(done, init.size()));
    const auto write = [&] {
      if (given != 0) std::memcpy(at + done, init.data() + done, given);
      std::memset(at + done + given, 0, part - given);
    };
    if (there == nullptr) {
      write();
    } else if (!(*there)(write)) {
      return false;
    }
  }
  return true;
}

bool InMemory(const ptx::Variable& v) { return v.space == ptx::Space::kGlobal || v.space == ptx::Space::kConst; }

}  // namespace

SoftModule::SoftModule(ModuleImagePtr image, uint32_t most_registers, const Around& around)
    : image_(std::move(image)),
      most_registers_(most_registers),
      table_(around.table),
      what_for_(around.what_for),
      arena_(around.arena),
      registry_(around.registry),
      capability_(around.capability) {
  registry_.push_back(this);
}

GpuResult<std::unique_ptr<SoftModule>> SoftModule::Make(std::vector<std::string> texts, uint32_t most_registers,
                                                        const Around& around) {
  auto image = around.images.Get(std::move(texts), around.table, around.what_for, Loading::kByFunction);
  if (!image) return tl::unexpected(std::move(image).error());
  std::unique_ptr<SoftModule> module(new SoftModule(std::move(*image), most_registers, around));
  module->managed_outside_ = around.managed.bytes != 0;
  const auto place = [&](const ptx::Variable& v) -> GpuResult<GpuVa> {
    const uint64_t bytes = std::max<uint64_t>(v.bytes, 1);
    if (!v.is_managed || !module->managed_outside_) return around.arena.Alloc(bytes, true);
    if (!Inside(module->managed_bytes_, Arena::Rounded(bytes), around.managed.bytes))
      return GpuFail(CuStatus::kInvalidValue,
                     fmt::format("the {} bytes for managed variables are too few", around.managed.bytes));
    return GpuVa{Raw(around.managed.address) + module->managed_bytes_};
  };
  if (auto r = module->Prepare(place); !r) return tl::unexpected(std::move(r).error());
  if (around.admit_vram && module->vram_bytes() != 0 && !around.admit_vram(module->vram_bytes()))
    return GpuFail(CuStatus::kOutOfMemory,
                   fmt::format("globals of {} bytes exceed the VF's VRAM", module->vram_bytes()));
  if (auto r = module->Initialise(around.managed.there); !r) return tl::unexpected(std::move(r).error());
  return module;
}

GpuResult<void> SoftModule::Prepare(const Placer& place) {
  if (auto r = CheckTargets(*image_, capability_); !r) return r;
  if (image_->const_bytes > kMaxConstBytes)
    return GpuFail(CuStatus::kInvalidPtx,
                   fmt::format("{} bytes of .const, the bank has {}", image_->const_bytes, kMaxConstBytes));
  if (auto r = PlaceVariables(place); !r) return r;
  program_ = MakeOwnProgram(image_->code);
  for (const auto& f : program_->functions) kernels_ += f->is_kernel;
  return {};
}

std::shared_ptr<Program> SoftModule::MakeOwnProgram(std::shared_ptr<const ProgramCode> code) const {
  auto program = MakeProgram(std::move(code), addresses_);
  for (const auto& f : program->functions) {
    if (!f->is_kernel) continue;
    f->info.const_bytes = MustFit<uint32_t>(image_->const_bytes);
    f->info.binary_version = capability_.number;
    if (most_registers_ != 0) f->info.registers = std::min(f->info.registers, most_registers_);
  }
  return program;
}

SoftModule::~SoftModule() {
  registry_.erase(std::remove(registry_.begin(), registry_.end(), this), registry_.end());
  // Nothing happens for what is not of the arena.
  for (const auto& [name, global] : globals_) arena_.Free(global.address, true);
}

GpuResult<void> SoftModule::PlaceVariables(const Placer& place) {
  addresses_.assign(image_->variables.size(), 0);
  for (size_t n = 0; n < image_->variables.size(); ++n) {
    const ptx::Variable& v = image_->variables[n];
    if (!InMemory(v)) continue;
    const auto known = globals_.find(v.name);
    if (known != globals_.end()) {
      addresses_[n] = Raw(known->second.address);
      continue;
    }
    if (v.is_extern && v.bytes == 0) continue;
    if (v.align > Arena::kGranule)
      return GpuFail(CuStatus::kInvalidPtx,
                     fmt::format("PTX line {}: alignment {} of {} is too large", v.line, v.align, v.name));
    auto address = place(v);
    if (!address)
      return GpuFail(address.error().status,
                     fmt::format("PTX line {}: variable {}: {}", v.line, v.name, address.error().text));
    const uint64_t taken = Arena::Rounded(std::max<uint64_t>(v.bytes, 1));
    if (v.is_managed) managed_bytes_ += taken;
    if (!v.is_managed || !managed_outside_) vram_bytes_ += taken;
    globals_[v.name] = {*address, v.bytes};
    addresses_[n] = Raw(*address);
  }
  return {};
}

// What the initialiser of `v` gives: bytes, and addresses among them.
GpuResult<std::vector<std::byte>> SoftModule::WithAddresses(const ptx::Variable& v) const {
  const auto bytes = std::as_bytes(std::span(v.init));
  std::vector<std::byte> init(bytes.begin(), bytes.end());
  for (const ptx::Relocation& r : v.relocations) {
    uint64_t value = 0;
    const auto global = globals_.find(r.symbol);
    const auto function = program_->FindFunction(r.symbol);
    if (global != globals_.end()) {
      value = Raw(global->second.address);
    } else if (function) {
      value = kFunctionHandle | *function;
    } else {
      return GpuFail(CuStatus::kInvalidPtx, fmt::format("PTX line {}: the initialiser of {} names {}, which is unknown",
                                                        v.line, v.name, r.symbol));
    }
    value += static_cast<uint64_t>(r.addend);
    if (r.mask) value = value >> r.shift & 0xff;
    if (r.bytes > 8 || r.offset > v.bytes || r.bytes > v.bytes - r.offset)
      return GpuFail(CuStatus::kInvalidPtx,
                     fmt::format("PTX line {}: the initialiser of {} is too long", v.line, v.name));
    init.resize(std::max<size_t>(init.size(), r.offset + r.bytes));
    std::memcpy(init.data() + r.offset, &value, r.bytes);
  }
  return init;
}

// Bytes and addresses that initialisers give; everything else is zero.
GpuResult<void> SoftModule::Initialise(const ModuleMemory::WhileThere& there) {
  for (size_t n = 0; n < image_->variables.size(); ++n) {
    const ptx::Variable& v = image_->variables[n];
    if (!InMemory(v) || addresses_[n] == 0 || v.is_extern) continue;
    std::vector<std::byte> own;
    if (!v.relocations.empty()) own = TRY(WithAddresses(v));
    const std::span<const std::byte> init = own.empty() ? std::as_bytes(std::span(v.init)) : std::span(own);
    const bool outside = v.is_managed && managed_outside_;
    if (!Write(arena_.Host(GpuVa{addresses_[n]}), v.bytes, init, outside ? &there : nullptr))
      return GpuFail(
          CuStatus::kInvalidValue,
          fmt::format("the memory for the managed variable {} was taken away while the module was loaded", v.name));
  }
  return {};
}

const FunctionInfo* SoftModule::Function(std::string_view name) const {
  const auto index = program_->FindFunction(std::string(name));
  if (!index || !program_->functions[*index]->is_kernel) return nullptr;
  if (!by_function()) return &program_->functions[*index]->info;
  const auto loaded = loaded_.find(name);
  return loaded == loaded_.end() ? nullptr : &loaded->second->functions[*index]->info;
}

bool SoftModule::NeedsLoading(std::string_view name) const {
  if (!by_function() || loaded_.count(name) != 0) return false;
  const auto index = program_->FindFunction(std::string(name));
  return index && program_->functions[*index]->is_kernel;
}

GpuResult<uint64_t> SoftModule::LoadFunction(std::string_view name) {
  const std::string& text = image_->texts[0];
  uint64_t read = 0;
  // What kernels have in common is decoded for each of them: somebody who wants them all gets them together.
  if (whole_ == nullptr && read_ > text.size()) {
    read_ = 0;
    if (auto code = DecodeKernel(text, *image_->ends, {}, table_, what_for_, &read))
      whole_ = MakeOwnProgram(std::move(*code));
  }
  std::shared_ptr<Program> program = whole_;
  if (program == nullptr) {
    auto code = DecodeKernel(text, *image_->ends, name, table_, what_for_, &read);
    read_ += read + program_->functions.size() * kHeaderCost;
    if (!code) return tl::unexpected(std::move(code).error());
    program = MakeOwnProgram(std::move(*code));
  }
  loaded_.emplace(name, std::move(program));
  return read;
}

GpuResult<GpuModule::Global> SoftModule::FindGlobal(std::string_view name) const {
  const auto it = globals_.find(name);
  if (it == globals_.end()) return GpuFail(CuStatus::kNotFound, fmt::format("the module has no variable {}", name));
  return it->second;
}

std::vector<std::string> SoftModule::FunctionNames() const {
  std::vector<std::string> names;
  for (const auto& f : program_->functions)
    if (f->is_kernel) names.push_back(f->info.name);
  return names;
}

SoftModule::Kernel SoftModule::Find(const FunctionInfo& info) const {
  const auto in = [&](const std::shared_ptr<Program>& program) -> Kernel {
    const auto index = program->FindFunction(info.name);
    if (!index) return {};
    const CodeFunction& f = *program->functions[*index];
    return &f.info == &info && f.is_kernel ? Kernel{&f, program} : Kernel{};
  };
  if (by_function()) {
    const auto loaded = loaded_.find(info.name);
    return loaded == loaded_.end() ? Kernel{} : in(loaded->second);
  }
  return program_ == nullptr ? Kernel{} : in(program_);
}

}  // namespace vgpud::soft
