#include "gpu/soft/soft_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gpu/soft/decoder.h"
#include "gpu/soft/ptx_link.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMaxConstBytes = 64 << 10;

bool InMemory(const ptx::Variable& v) { return v.space == ptx::Space::kGlobal || v.space == ptx::Space::kConst; }

}  // namespace

SoftModule::SoftModule(Texts ptx, const Around& around)
    : ptx_(std::move(ptx)), arena_(around.arena), registry_(around.registry) {
  registry_.push_back(this);
}

GpuResult<std::unique_ptr<SoftModule>> SoftModule::Make(Texts ptx, const Around& around) {
  auto source = ptx::ParseParts(*ptx);
  if (!source) return tl::unexpected(std::move(source).error());
  std::unique_ptr<SoftModule> module(new SoftModule(std::move(ptx), around));
  const auto place = [&](const ptx::Variable& v) { return around.arena.Alloc(std::max<uint64_t>(v.bytes, 1), true); };
  if (auto r = module->Prepare(**source, around.table, place); !r) return tl::unexpected(std::move(r).error());
  if (auto r = module->Initialise(**source); !r) return tl::unexpected(std::move(r).error());
  return module;
}

GpuResult<void> SoftModule::Prepare(const ptx::Module& source, const OpTable& table, const Placer& place) {
  if (auto r = PlaceVariables(source, place); !r) return r;
  auto program = Decode(source, table, addresses_);
  if (!program) return tl::unexpected(std::move(program).error());
  program_ = std::move(*program);
  uint64_t const_bytes = 0;
  for (const ptx::Variable& v : source.variables)
    if (v.space == ptx::Space::kConst) const_bytes += v.bytes;
  if (const_bytes > kMaxConstBytes)
    return GpuFail(CuStatus::kInvalidPtx,
                   fmt::format("{} bytes of .const, the bank has {}", const_bytes, kMaxConstBytes));
  for (const auto& f : program_->functions) {
    if (!f->is_kernel) continue;
    ++kernels_;
    f->info.const_bytes = static_cast<uint32_t>(const_bytes);
  }
  return {};
}

SoftModule::~SoftModule() {
  registry_.erase(std::remove(registry_.begin(), registry_.end(), this), registry_.end());
  for (const auto& [name, global] : globals_) arena_.Free(global.address, true);
}

GpuResult<void> SoftModule::PlaceVariables(const ptx::Module& source, const Placer& place) {
  addresses_.assign(source.variables.size(), 0);
  for (size_t n = 0; n < source.variables.size(); ++n) {
    const ptx::Variable& v = source.variables[n];
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
    vram_bytes_ += Arena::Rounded(std::max<uint64_t>(v.bytes, 1));
    globals_[v.name] = {*address, v.bytes};
    addresses_[n] = Raw(*address);
  }
  return {};
}

// Bytes and addresses that initialisers give; everything else is zero.
GpuResult<void> SoftModule::Initialise(const ptx::Module& source) {
  for (size_t n = 0; n < source.variables.size(); ++n) {
    const ptx::Variable& v = source.variables[n];
    if (!InMemory(v) || addresses_[n] == 0 || v.is_extern) continue;
    std::byte* at = arena_.Host(GpuVa{addresses_[n]});
    std::memset(at, 0, v.bytes);
    if (!v.init.empty()) std::memcpy(at, v.init.data(), std::min<size_t>(v.init.size(), v.bytes));
    for (const ptx::Relocation& r : v.relocations) {
      uint64_t value = 0;
      const auto global = globals_.find(r.symbol);
      const auto function = program_->function_index.find(r.symbol);
      if (global != globals_.end()) {
        value = Raw(global->second.address);
      } else if (function != program_->function_index.end()) {
        value = kFunctionHandle | function->second;
      } else {
        return GpuFail(
            CuStatus::kInvalidPtx,
            fmt::format("PTX line {}: the initialiser of {} names {}, which is unknown", v.line, v.name, r.symbol));
      }
      value += static_cast<uint64_t>(r.addend);
      if (r.bytes > 8 || r.offset > v.bytes || r.bytes > v.bytes - r.offset)
        return GpuFail(CuStatus::kInvalidPtx,
                       fmt::format("PTX line {}: the initialiser of {} is too long", v.line, v.name));
      std::memcpy(at + r.offset, &value, r.bytes);
    }
  }
  return {};
}

const FunctionInfo* SoftModule::Function(std::string_view name) const {
  const auto it = program_->function_index.find(std::string(name));
  if (it == program_->function_index.end()) return nullptr;
  const CodeFunction& f = *program_->functions[it->second];
  return f.is_kernel ? &f.info : nullptr;
}

GpuResult<GpuModule::Global> SoftModule::FindGlobal(std::string_view name) const {
  const auto it = globals_.find(name);
  if (it == globals_.end()) return GpuFail(CuStatus::kNotFound, fmt::format("the module has no variable {}", name));
  return it->second;
}

const CodeFunction* SoftModule::Find(const FunctionInfo& info) const {
  if (program_ == nullptr) return nullptr;
  for (const auto& f : program_->functions)
    if (&f->info == &info && f->is_kernel) return f.get();
  return nullptr;
}

}  // namespace vgpud::soft
