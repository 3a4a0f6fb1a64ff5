// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/code/source_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace vgpud::soft {
namespace {

constexpr size_t kMostNameBytes = 200;

// What a message may quote of a hostile text: the end, where a file's own name is.
std::string Quotable(std::string_view name) {
  const bool cut = name.size() > kMostNameBytes;
  if (cut) name.remove_prefix(name.size() - kMostNameBytes);
  std::string out = cut ? "..." : "";
  for (const char c : name) out += c < ' ' || c > '~' ? '?' : c;
  return out;
}

}  // namespace

SourceLines::SourceLines(const ptx::Module& module) {
  size_t count = 0;
  for (const auto& f : module.functions) count += f->source_lines.size();
  if (count == 0) return;
  for (const std::string_view name : module.files) files_.push_back(Quotable(name));
  lines_.reserve(count);
  for (const auto& f : module.functions) {
    lines_.insert(lines_.end(), f->source_lines.begin(), f->source_lines.end());
    ends_.push_back(lines_.size());
  }
}

std::string SourceLines::Find(uint32_t function, uint32_t ptx_line) const {
  if (function >= ends_.size()) return "";
  const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(function == 0 ? 0 : ends_[function - 1]);
  const auto end = lines_.begin() + static_cast<std::ptrdiff_t>(ends_[function]);
  const auto behind =
      std::upper_bound(begin, end, ptx_line, [](uint32_t line, const ptx::SourceLine& s) { return line < s.ptx_line; });
  if (behind == begin) return "";
  const ptx::SourceLine& found = behind[-1];
  if (found.line == 0 || found.file >= files_.size() || files_[found.file].empty()) return "";
  return fmt::format("{}:{}", files_[found.file], found.line);
}

uint64_t SourceLines::bytes() const {
  uint64_t sum = lines_.size() * sizeof lines_[0] + ends_.size() * sizeof ends_[0];
  for (const std::string& name : files_) sum += sizeof name + name.size();
  return sum;
}

}  // namespace vgpud::soft
