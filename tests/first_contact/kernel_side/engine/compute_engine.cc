// SPDX-License-Identifier: Apache-2.0
// Inline data, reports, and launches: a kernel ends as soon as it is launched and has written nothing.
#include "tests/first_contact/kernel_side/engine/compute_engine.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/log.h"
#include "tests/first_contact/kernel_side/abi/methods.h"

namespace vgpud::kernel_side {
namespace {

using Descriptor = std::array<uint32_t, compute::kDescriptorWords>;

class ComputeEngine : public Engine {
 public:
  using Engine::Engine;

 protected:
  Outcome Do(uint32_t method, uint32_t value) override {
    constexpr uint32_t kInlineEnd = compute::kInlineDescriptor + 4 * compute::kDescriptorWords;
    if (method >= compute::kInlineDescriptor && method < kInlineEnd) {
      inline_[(method - compute::kInlineDescriptor) / 4] = value;
      return method + 4 == kInlineEnd ? LaunchInline() : Outcome::kDone;
    }
    switch (method) {
      case compute::kLaunchData:
        data_.clear();
        return Outcome::kDone;
      case compute::kInlineData:
        return TakeData(value);
      case compute::kSignalDescriptor:
      case compute::kSignalDescriptor2:
        return LaunchStored(uint64_t{Register(compute::kDescriptorAddress)} << 8);
      case compute::kReport:
        return Report(value);
      default:
        return Outcome::kDone;
    }
  }

 private:
  Outcome TakeData(uint32_t value) {
    const auto bytes = std::as_bytes(std::span{&value, 1});
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    const uint64_t length = Register(compute::kLineLength);
    const uint64_t lines = std::max<uint32_t>(1, Register(compute::kLineCount));
    if (data_.size() < length * lines) return Outcome::kDone;
    const uint64_t out = WideRegister(compute::kOutHigh, compute::kOutLow);
    for (uint64_t line = 0; line < lines; ++line)
      if (!space().Write(out + line * Register(compute::kPitchOut), std::span(data_).subspan(line * length, length)))
        return Outcome::kFault;
    data_.clear();
    return Outcome::kDone;
  }

  Outcome Report(uint32_t value) {
    const bool releases = Bits(value, 1, 0) == 0;
    const uint64_t at = WideRegister(compute::kReportHigh, compute::kReportLow);
    const uint32_t payload = Register(compute::kReportPayload);
    Outcome outcome = Outcome::kDone;
    if (releases && Bits(value, 3, 3) != 0)
      outcome = Reduce(at, Bits(value, 11, 9), payload, Bits(value, 18, 17) != 0);
    else if (releases)
      outcome = Release(at, payload, Bits(value, 28, 28) == 0);
    if (!releases || Bits(value, 20, 20) != 0) surroundings().Interrupt();
    return outcome;
  }

  // What a driver reads back of the descriptor is what it gave.
  Outcome LaunchInline() {
    const uint64_t at = WideRegister(compute::kInlineDescriptorHigh, compute::kInlineDescriptorLow) << 8;
    if (!space().Write(at, std::as_bytes(std::span(inline_)))) return Outcome::kFault;
    return LaunchStored(at);
  }

  Outcome LaunchStored(uint64_t at) {
    if (surroundings().HoldsKernels()) return Outcome::kWait;
    Descriptor descriptor;
    if (!space().Read(at, std::as_writable_bytes(std::span(descriptor)))) return Outcome::kFault;
    const auto* const form = FormOf(descriptor);
    return form == nullptr ? Outcome::kFault : Launch(descriptor, *form);
  }

  static bool IsSet(const Descriptor& descriptor, uint32_t word, uint32_t bit) {
    return Bits(descriptor[word], bit, bit) != 0;
  }

  static const compute::DescriptorForm* FormOf(const Descriptor& descriptor) {
    const uint32_t version = Bits(descriptor[compute::kVersionWord], 7, 4);
    for (const auto& form : compute::kForms)
      if (form.version == version) return &form;
    LOG(kWarning, "a launch descriptor of version {} is not known", version);
    return nullptr;
  }

  Outcome Launch(const Descriptor& descriptor, const compute::DescriptorForm& form) {
    const uint32_t* const grid = &descriptor[form.grid_word];
    if (grid[0] != 0) surroundings().KernelLaunched();  // else it only prepares one
    LOG(kDebug, "launch of {} x {} x {} blocks", grid[0], grid[1] & 0xffff, grid[2] & 0xffff);
    for (const auto& release : form.releases) {
      if (!IsSet(descriptor, release.enable_word, release.enable_bit)) continue;
      const uint64_t at = Wide(descriptor[release.address_word + 1] & 0xff, descriptor[release.address_word]);
      const bool with_time = Bits(descriptor[release.size_word], release.size_high, release.size_low) == 0;
      const Outcome outcome = Release(at, descriptor[release.payload_word], with_time);
      if (outcome != Outcome::kDone) return outcome;
    }
    return Outcome::kDone;
  }

  Descriptor inline_{};
  std::vector<std::byte> data_;
};

}  // namespace

std::unique_ptr<Engine> MakeComputeEngine(Surroundings& surroundings) {
  return std::make_unique<ComputeEngine>(surroundings);
}

}  // namespace vgpud::kernel_side
