// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/drill/preempt_drill.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace vgpud::exec {
namespace {

uint64_t HashOf(uint64_t seed, std::span<const std::byte> bytes) {
  uint64_t hash = seed ^ 0x9e3779b97f4a7c15 * bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

PreemptDrill::PreemptDrill(uint64_t every) : every_(every), trip_{&word_, {every}} {}

StopWord PreemptDrill::Arm(const StopWord& stop) {
  if (every_ == 0 || stop.Stopped()) return stop;
  armed_ = word_.load(std::memory_order_relaxed);
  return {&word_, armed_};
}

bool PreemptDrill::CountCut() {
  if (word_.load(std::memory_order_relaxed) == armed_) return false;
  armed_ = word_.load(std::memory_order_relaxed);
  cuts_.fetch_add(1, std::memory_order_relaxed);
  trip_.left.store(every_, std::memory_order_relaxed);
  return true;
}

void PreemptDrill::AddCopy(GpuVa from, std::span<const std::byte> bytes) {
  account_.fetch_add(HashOf(Raw(from), bytes), std::memory_order_relaxed);
  copied_.fetch_add(bytes.size(), std::memory_order_relaxed);
}

void PreemptDrill::AddPrinted(std::span<const std::byte> text) {
  for (const std::byte b : text) {
    line_ += static_cast<char>(b);
    if (line_.back() != '\n') continue;
    account_.fetch_add(HashOf(1, std::as_bytes(std::span(line_))), std::memory_order_relaxed);
    line_.clear();
  }
  printed_.fetch_add(text.size(), std::memory_order_relaxed);
}

std::string PreemptDrill::Report() const {
  return fmt::format("preempt drill: every={} cuts={} instructions={} copied={} printed={} account={:016x}", every_,
                     cuts_.load(), instructions_.load(), copied_.load(), printed_.load(), account_.load());
}

}  // namespace vgpud::exec
