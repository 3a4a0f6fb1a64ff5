// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/module/linker.h"

#include <fmt/core.h>

#include <array>
#include <memory>
#include <string>

#include "gpu/ptx/fatbin.h"

namespace vgpud::driver {
namespace {

constexpr size_t kLogBytes = 16 << 10;

class Linking {
 public:
  explicit Linking(const Card& card) : card_(card) {}
  ~Linking() {
    if (state_ != nullptr) (void)card_.api().LinkDestroy(state_);
  }
  Linking(const Linking&) = delete;
  Linking& operator=(const Linking&) = delete;

  // `most_registers`: of a thread, 0 = any.
  GpuResult<void> Begin(uint32_t most_registers) {
    names_ = {JitOption::kErrorLog, JitOption::kErrorLogBytes, JitOption::kMaxRegisters};
    values_ = {log_.data(), reinterpret_cast<void*>(log_.size() - 1),
               reinterpret_cast<void*>(uintptr_t{most_registers})};
    const auto count = static_cast<uint32_t>(names_.size()) - (most_registers == 0 ? 1 : 0);
    return Check(card_.api().LinkCreate(count, names_.data(), values_.data(), &state_), "cuLinkCreate");
  }
  // Of a part that is PTX alone the text: what stands around it may be libcuda's in the guest (cuLinkAddData).
  GpuResult<void> Add(const ptx::Part& part, const std::string& name, bool of_ptx) {
    if (part.has_machine_code && !of_ptx) return Add(LinkInput::kFatbin, part.fatbin, name);
    const auto texts = ptx::SelectPtx(part.fatbin, card_.capability());
    if (!texts && !part.has_machine_code && texts.error().status == CuStatus::kNoBinaryForGpu) return {};
    if (!texts) return tl::unexpected(texts.error());
    const auto text = std::as_bytes(std::span(texts->front().c_str(), texts->front().size() + 1));
    return Add(LinkInput::kPtx, text, name);
  }
  GpuResult<std::vector<std::byte>> Complete() {
    void* code = nullptr;
    size_t bytes = 0;
    if (auto done = Check(card_.api().LinkComplete(state_, &code, &bytes), "cuLinkComplete"); !done)
      return tl::unexpected(std::move(done.error()));
    const auto* const begin = static_cast<const std::byte*>(code);
    return std::vector<std::byte>(begin, begin + bytes);
  }

 private:
  GpuResult<void> Add(LinkInput type, std::span<const std::byte> input, const std::string& name) {
    std::vector<std::byte> own(input.begin(), input.end());
    return Check(card_.api().LinkAddData(state_, type, own.data(), own.size(), name.c_str(), 0, nullptr, nullptr),
                 "cuLinkAddData");
  }
  GpuResult<void> Check(Status status, const char* call) const {
    if (status == kOk) return {};
    std::string text = fmt::format("{}: {}", call, card_.api().Describe(status));
    if (log_.front() != '\0') text += fmt::format("\n{}", log_.data());
    return GpuFail(static_cast<CuStatus>(status), std::move(text));
  }

  const Card& card_;
  LinkState state_ = nullptr;
  // Where the driver writes as long as there is a state.
  std::array<char, kLogBytes> log_{};
  std::array<JitOption, 3> names_{};
  std::array<void*, 3> values_{};
};

}  // namespace

GpuResult<std::optional<std::vector<std::byte>>> LinkParts(const Card& card, std::span<const std::byte> image,
                                                           bool of_ptx) {
  const auto parts = TRY(ptx::PartsOf(image));
  if (parts.empty()) return std::nullopt;
  card.Bind();
  const auto linking = std::make_unique<Linking>(card);
  const uint32_t most_registers = TRY(ptx::MostRegisters(image));
  TRY(linking->Begin(most_registers));
  for (size_t p = 0; p < parts.size(); ++p) TRY(linking->Add(parts[p], fmt::format("part {}", p + 1), of_ptx));
  return TRY(linking->Complete());
}

}  // namespace vgpud::driver
