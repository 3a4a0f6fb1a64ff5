// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/module/cuda_module.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/log.h"
#include "gpu/cuda/module/linker.h"
#include "gpu/cuda/module/machine_code.h"
#include "gpu/ptx/fatbin.h"
#include "gpu/rewrite/rewrite.h"

namespace vgpud::driver {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t body_bytes;
};
// More than any compiler writes about a kernel; a name is passed on as it is.
constexpr size_t kMostName = 64 << 10;
constexpr size_t kMostParams = 8192;
constexpr uint32_t kFirstWithClusters = 90;
constexpr size_t kLogBytes = 8 << 10;
// Of libraries with more than that the driver would have to compile minutes.
constexpr size_t kMostPtx = 8 << 20;

GpuError FromDriver(const Card& card, Status status, std::string_view what) {
  return {static_cast<CuStatus>(status), fmt::format("{}: {}", what, card.api().Describe(status))};
}

template <class T>
T ReadAt(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

tl::unexpected<GpuError> CutOff(const char* what, uint64_t says, size_t has) {
  return GpuFail(CuStatus::kInvalidImage, fmt::format("{} says that it has {} bytes, and has {}", what, says, has));
}

GpuResult<void> MeasureElf(std::span<const std::byte> image) {
  if (image.size() < sizeof(Elf64_Ehdr)) return CutOff("machine code", sizeof(Elf64_Ehdr), image.size());
  const auto header = ReadAt<Elf64_Ehdr>(image);
  const CheckedSize sections = CheckedSize(header.e_shoff) + CheckedSize(uint64_t{header.e_shnum}) * header.e_shentsize;
  const CheckedSize segments = CheckedSize(header.e_phoff) + CheckedSize(uint64_t{header.e_phnum}) * header.e_phentsize;
  for (const CheckedSize& table : {sections, segments})
    if (!table.Fits(image.size())) return CutOff("machine code", table.saturated(), image.size());
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr))
    return GpuFail(CuStatus::kInvalidImage, "machine code with sections of an unknown form");
  for (uint64_t s = 0; s < header.e_shnum; ++s) {
    const auto section = ReadAt<Elf64_Shdr>(image.subspan(header.e_shoff + s * sizeof(Elf64_Shdr)));
    const CheckedSize end = CheckedSize(section.sh_offset) + section.sh_size;
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL && !end.Fits(image.size()))
      return CutOff("machine code", end.saturated(), image.size());
  }
  return {};
}

bool IsText(std::span<const std::byte> image) {
  return std::all_of(image.begin(), image.begin() + static_cast<ptrdiff_t>(std::min<size_t>(image.size(), 16)),
                     [](std::byte b) {
                       return b == std::byte{'\t'} || b == std::byte{'\n'} || b == std::byte{'\r'} ||
                              (b >= std::byte{' '} && b <= std::byte{'~'});
                     });
}

// The PTX that suits the card with a kernel that goes in turns beside each that can be stopped; nullopt and why.
std::optional<rewrite::Rewritten> RewriteImage(const Card& card, std::span<const std::byte> image,
                                               const rewrite::Options& options, std::string* why_not) {
  const auto no = [why_not](std::string why) {
    *why_not = std::move(why);
    return std::nullopt;
  };
  if (card.best_rung() == rewrite::Rung::kNone) return no("kernels are not changed here (vgpuctl gpu: rungs)");
  if (std::memcmp(image.data(), ELFMAG, SELFMAG) == 0) return no("its module is machine code without PTX");
  const auto texts = ptx::SelectPtx(image, card.capability());
  if (!texts) return no("its module has no PTX that can be read: " + texts.error().text);
  if (texts->size() != 1) return no("its module has parts that are to be linked");
  if (texts->front().size() > kMostPtx)
    return no(fmt::format("its module has {} bytes of PTX, {} are rewritten at most", texts->front().size(), kMostPtx));
  auto rewritten = rewrite::Rewrite(texts->front(), options);
  if (!rewritten) return no("its module can't be rewritten: " + rewritten.error().text);
  if (std::all_of(rewritten->kernels.begin(), rewritten->kernels.end(),
                  [](const auto& plan) { return plan.rung == rewrite::Rung::kNone; }))
    return no(rewritten->kernels.empty() || rewritten->kernels.front().reasons.empty()
                  ? "no kernel of its module can be stopped"
                  : rewritten->kernels.front().reasons.front());
  return std::move(*rewritten);
}

// `most_registers`: of a thread, 0 = any. Nothing, or what the driver says.
std::optional<GpuError> LoadInto(const Card& card, const void* data, uint32_t most_registers, Module* module) {
  std::array<char, kLogBytes> log{};
  JitOption names[] = {JitOption::kErrorLog, JitOption::kErrorLogBytes, JitOption::kMaxRegisters};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1),
                    reinterpret_cast<void*>(uintptr_t{most_registers})};
  const uint32_t count = MustFit<uint32_t>(std::size(names)) - (most_registers == 0 ? 1 : 0);
  const Status status = card.api().ModuleLoadDataEx(module, data, count, names, values);
  if (status == kOk) return std::nullopt;
  GpuError error = FromDriver(card, status, "cuModuleLoadDataEx");
  if (log.front() != '\0') error.text += fmt::format("\n{}", log.data());
  return error;
}

std::optional<int> ThreadsOf(const Card& card, Module module, const std::string& name) {
  Function function = nullptr;
  int threads = 0;
  if (card.api().ModuleGetFunction(&function, module, name.c_str()) != kOk ||
      card.api().FuncGetAttribute(&threads, FunctionAttribute::kMaxThreads, function) != kOk || threads <= 0)
    return std::nullopt;
  return threads;
}

// What goes in turns takes more registers. Kernels whose blocks can have fewer threads for it than the program's: they
// get a bound, which costs them local memory instead.
rewrite::ThreadBounds Bounds(const Card& card, Module module, std::span<const rewrite::KernelPlan> plans) {
  rewrite::ThreadBounds bounds;
  for (const rewrite::KernelPlan& plan : plans) {
    if (plan.rung == rewrite::Rung::kNone) continue;
    const auto own = ThreadsOf(card, module, plan.name), in_turns = ThreadsOf(card, module, plan.entry);
    if (own && in_turns && *in_turns < *own) bounds.emplace(plan.name, static_cast<uint32_t>(*own));
  }
  return bounds;
}

// The module, and the plans of its kernels; or why it has to be loaded as it is.
std::vector<rewrite::KernelPlan> LoadRewritten(const Card& card, std::span<const std::byte> image,
                                               uint32_t most_registers, Module* module, std::string* why_not) {
  rewrite::Options options{.best = card.best_rung(), .keep_originals = true, .pieces = true};
  auto rewritten = RewriteImage(card, image, options, why_not);
  if (!rewritten) return {};
  if (const auto error = LoadInto(card, rewritten->text.c_str(), most_registers, module)) {
    *why_not = "the driver refuses its rewritten PTX: " + error->text;
    LOG(kWarning, "a module is loaded as it is: {}", *why_not);
    return {};
  }
  std::vector<rewrite::KernelPlan> plans = std::move(rewritten->kernels);
  const rewrite::ThreadBounds bounds = Bounds(card, *module, plans);
  if (bounds.empty()) return plans;
  options.most_threads = &bounds;
  Module bounded = nullptr;
  std::string ignored;
  const auto again = RewriteImage(card, image, options, &ignored);
  if (!again || LoadInto(card, again->text.c_str(), most_registers, &bounded)) return plans;
  (void)card.api().ModuleUnload(*module);
  *module = bounded;
  return again->kernels;
}

}  // namespace

GpuResult<void> MeasureImage(std::span<const std::byte> image) {
  if (image.size() < sizeof(uint32_t)) return GpuFail(CuStatus::kInvalidImage, "an image of less than four bytes");
  if (ReadAt<uint32_t>(image) == kFatbinMagic) {
    if (image.size() < sizeof(FatbinHeader)) return CutOff("the fat binary", sizeof(FatbinHeader), image.size());
    const auto header = ReadAt<FatbinHeader>(image);
    const CheckedSize says = CheckedSize(uint64_t{header.header_bytes}) + header.body_bytes;
    if (!says.Fits(image.size())) return CutOff("the fat binary", says.saturated(), image.size());
    return {};
  }
  if (std::memcmp(image.data(), ELFMAG, SELFMAG) == 0) return MeasureElf(image);
  if (IsText(image)) return {};
  return GpuFail(CuStatus::kInvalidImage, "the image is no fat binary, no machine code and no PTX text");
}

GpuResult<std::unique_ptr<GpuModule>> CudaModule::Load(const Card& card, Ranges& ranges,
                                                       std::span<const std::byte> image) {
  TRY(MeasureImage(image));
  const bool ptx_only = TRY(HasTooNewCode(image, card.driver_version()));
  card.Bind();
  size_t before = 0, after = 0, total = 0;
  (void)card.api().MemGetInfo(&before, &total);
  Module module = nullptr;
  std::string why_not;
  const uint32_t most_registers = TRY(ptx::MostRegisters(image));
  auto plans = LoadRewritten(card, image, most_registers, &module, &why_not);
  if (plans.empty()) {
    const auto linked = TRY(LinkParts(card, image, ptx_only));
    if (linked) image = *linked;
    std::string text = IsText(image) ? std::string(reinterpret_cast<const char*>(image.data()), image.size()) : "";
    if (ptx_only && !linked) text = TRY(ptx::SelectPtx(image, card.capability())).front();
    const void* data = text.empty() ? static_cast<const void*>(image.data()) : text.c_str();
    if (auto error = LoadInto(card, data, most_registers, &module)) return tl::unexpected(std::move(*error));
  }
  (void)card.api().MemGetInfo(&after, &total);
  std::unique_ptr<CudaModule> loaded(new CudaModule(card, ranges, module));
  loaded->vram_bytes_ = before > after ? before - after : 0;
  loaded->plans_ = std::move(plans);
  for (const rewrite::KernelPlan& plan : loaded->plans_) loaded->plan_of_.emplace(plan.name, &plan);
  loaded->why_not_rewritten_ = std::move(why_not);
  return loaded;
}

CudaModule::~CudaModule() {
  card_.Bind();
  for (const auto& [name, global] : globals_) (void)ranges_.Remove(Raw(global.address), Ranges::Kind::kVariable);
  (void)card_.api().ModuleUnload(module_);
}

uint32_t CudaModule::AttributeOf(driver::Function handle, FunctionAttribute which, uint32_t otherwise) const {
  int value = 0;
  const bool told = card_.api().FuncGetAttribute(&value, which, handle) == kOk && value >= 0;
  return told ? static_cast<uint32_t>(value) : otherwise;
}

void CudaModule::DescribeTurns(Kernel& kernel) const {
  kernel.why_not_in_turns = why_not_rewritten_;
  const auto found = plan_of_.find(kernel.name);
  if (found == plan_of_.end()) return;
  const rewrite::KernelPlan* const plan = found->second;
  if (plan->rung == rewrite::Rung::kNone) {
    kernel.why_not_in_turns = plan->reasons.empty() ? "it can't be rewritten" : plan->reasons.front();
    return;
  }
  kernel.in_turns = FindInTurns(kernel, *plan);
  if (kernel.in_turns == nullptr) kernel.why_not_in_turns = "the driver does not find the kernel that goes in turns";
  if (kernel.in_turns == nullptr || plan->piece_entry.empty()) return;
  rewrite::KernelPlan of_piece = *plan;
  of_piece.entry = plan->piece_entry;
  of_piece.rung = rewrite::Rung::kBlocks;
  of_piece.pieces = true;
  of_piece.added_shared_bytes = 0;
  kernel.in_pieces = FindInTurns(kernel, of_piece);
}

// nullptr: the driver has none.
std::unique_ptr<InTurns> CudaModule::FindInTurns(const Kernel& kernel, const rewrite::KernelPlan& plan) const {
  auto in_turns = std::make_unique<InTurns>();
  if (card_.api().ModuleGetFunction(&in_turns->handle, module_, plan.entry.c_str()) != kOk) return nullptr;
  in_turns->plan = plan;
  in_turns->static_shared_bytes = std::max(AttributeOf(in_turns->handle, FunctionAttribute::kSharedBytes, 0),
                                           kernel.static_shared_bytes + plan.added_shared_bytes);
  in_turns->max_threads = AttributeOf(in_turns->handle, FunctionAttribute::kMaxThreads, kernel.max_threads);
  in_turns->dynamic_shared_set = AttributeOf(in_turns->handle, FunctionAttribute::kMaxDynamicShared, 0);
  // At once, because a driver may say of a function that is not allowed so much that none of its blocks fits.
  const int most = card_.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const int dynamic = most - static_cast<int>(in_turns->static_shared_bytes);
  if (dynamic > static_cast<int>(in_turns->dynamic_shared_set) &&
      card_.api().FuncSetAttribute(in_turns->handle, FunctionAttribute::kMaxDynamicShared, dynamic) == kOk)
    in_turns->dynamic_shared_set = static_cast<uint32_t>(dynamic);
  return in_turns;
}

std::unique_ptr<Kernel> CudaModule::Describe(std::string_view name, driver::Function handle) const {
  const Api& api = card_.api();
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->handle = handle;
  size_t offset = 0, bytes = 0;
  for (size_t p = 0; p < kMostParams && api.FuncGetParamInfo(handle, p, &offset, &bytes) == kOk; ++p) {
    if (offset > UINT16_MAX || bytes > UINT16_MAX) return nullptr;
    kernel->params.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
    kernel->param_bytes = std::max(kernel->param_bytes, static_cast<uint32_t>(offset + bytes));
  }
  const auto attribute = [&](FunctionAttribute which, uint32_t otherwise) {
    return AttributeOf(handle, which, otherwise);
  };
  kernel->static_shared_bytes = attribute(FunctionAttribute::kSharedBytes, 0);
  kernel->const_bytes = attribute(FunctionAttribute::kConstBytes, 0);
  kernel->local_bytes = attribute(FunctionAttribute::kLocalBytes, 0);
  kernel->registers = std::max(attribute(FunctionAttribute::kRegisters, 1), 1u);
  kernel->max_threads = attribute(FunctionAttribute::kMaxThreads, kernel->max_threads);
  kernel->ptx_version = attribute(FunctionAttribute::kPtxVersion, kernel->ptx_version);
  kernel->binary_version = attribute(FunctionAttribute::kBinaryVersion, kernel->binary_version);
  kernel->dynamic_shared_set = attribute(FunctionAttribute::kMaxDynamicShared, 0);
  kernel->needs_cluster = attribute(FunctionAttribute::kClusterMustBeSet, 0) != 0;
  kernel->cluster[0] = attribute(FunctionAttribute::kClusterWidth, 0);
  kernel->cluster[1] = attribute(FunctionAttribute::kClusterHeight, 0);
  kernel->cluster[2] = attribute(FunctionAttribute::kClusterDepth, 0);
  // Which clusters the program allowed itself its libcuda has checked.
  if (card_.capability() >= kFirstWithClusters)
    (void)api.FuncSetAttribute(handle, FunctionAttribute::kNonPortableClusters, 1);
  DescribeTurns(*kernel);
  return kernel;
}

const FunctionInfo* CudaModule::Function(std::string_view name) const {
  if (const auto it = kernels_.find(name); it != kernels_.end()) return it->second.get();
  // Not one of those beside the program's.
  if (name.size() > kMostName || (!plans_.empty() && !plan_of_.contains(name))) return nullptr;
  card_.Bind();
  const std::string text(name);
  driver::Function handle = nullptr;
  if (card_.api().ModuleGetFunction(&handle, module_, text.c_str()) != kOk) return nullptr;
  auto kernel = Describe(name, handle);
  return kernel == nullptr ? nullptr : kernels_.emplace(text, std::move(kernel)).first->second.get();
}

GpuResult<GpuModule::Global> CudaModule::FindGlobal(std::string_view name) const {
  if (const auto it = globals_.find(name); it != globals_.end()) return it->second;
  const std::string text(name.substr(0, kMostName));
  card_.Bind();
  DevicePtr address = 0;
  size_t bytes = 0;
  if (const Status status = card_.api().ModuleGetGlobal(&address, &bytes, module_, text.c_str()); status != kOk)
    return tl::unexpected(FromDriver(card_, status, fmt::format("the variable \"{}\"", text.substr(0, 200))));
  const Global global{GpuVa{address}, bytes};
  ranges_.Add(address, bytes, Ranges::Kind::kVariable);
  globals_.emplace(text, global);
  return global;
}

uint32_t CudaModule::function_count() const {
  if (!plans_.empty()) return static_cast<uint32_t>(plans_.size());
  card_.Bind();
  uint32_t count = 0;
  return card_.api().ModuleGetFunctionCount(&count, module_) == kOk ? count : 0;
}

std::vector<std::string> CudaModule::FunctionNames() const {
  std::vector<std::string> planned;
  for (const rewrite::KernelPlan& plan : plans_) planned.push_back(plan.name);
  if (!planned.empty()) return planned;
  std::vector<driver::Function> handles(function_count());
  std::vector<std::string> names;
  if (handles.empty() ||
      card_.api().ModuleEnumerateFunctions(handles.data(), static_cast<uint32_t>(handles.size()), module_) != kOk)
    return names;
  for (const driver::Function handle : handles) {
    const char* name = nullptr;
    if (card_.api().FuncGetName(&name, handle) == kOk && name != nullptr) names.emplace_back(name);
  }
  return names;
}

}  // namespace vgpud::driver
