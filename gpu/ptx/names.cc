// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/names.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"

namespace vgpud::ptx {
namespace {

constexpr uint32_t kNoEntry = 0xffffffff;
constexpr size_t kMaxMemberDigits = 7;  // ranges have at most a million members

// "%tid" stands for %tid.x, .y, .z and .w.
constexpr std::string_view kVectorSpecials[] = {
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
};
constexpr std::string_view kScalarSpecials[] = {
    "WARP_SZ",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%is_explicit_cluster",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%total_smem_size",
    "%aggr_smem_size",
    "%dynamic_smem_size",
    "%current_graph_exec",
};
// Name followed by a number below `count`.
struct NumberedSpecial {
  std::string_view name;
  uint32_t count;
  std::string_view suffix;
};
constexpr NumberedSpecial kNumberedSpecials[] = {{"%envreg", 32, ""}, {"%pm", 8, ""}, {"%pm", 8, "_64"}};

bool IsNumberedSpecial(std::string_view name, const NumberedSpecial& special) {
  if (!name.starts_with(special.name) || !name.ends_with(special.suffix)) return false;
  name.remove_prefix(special.name.size());
  if (name.size() <= special.suffix.size()) return false;
  name.remove_suffix(special.suffix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number < special.count;
}

}  // namespace

void NameTable::OpenScope() { scopes_.push_back(MustFit<uint32_t>(entries_.size())); }

void NameTable::CloseScope() {
  while (entries_.size() > scopes_.back()) {
    const Entry& entry = entries_.back();
    Index& index = entry.is_range ? ranges_ : names_;
    if (entry.hidden == kNoEntry)
      index.erase(entry.name);
    else
      index[entry.name] = entry.hidden;
    entries_.pop_back();
  }
  scopes_.pop_back();
}

bool NameTable::Add(Index& index, std::string_view name, Binding binding, bool is_range) {
  const auto id = MustFit<uint32_t>(entries_.size());
  const auto [at, is_new] = index.try_emplace(name, id);
  uint32_t hidden = kNoEntry;
  if (!is_new) {
    if (entries_[at->second].depth == depth()) return false;
    hidden = at->second;
    at->second = id;
  }
  entries_.push_back(Entry{binding, depth(), is_range, hidden, name});
  return true;
}

bool NameTable::Declare(std::string_view name, Binding binding) { return Add(names_, name, binding, false); }

bool NameTable::DeclareRange(std::string_view prefix, uint32_t first, uint32_t count) {
  return Add(ranges_, prefix, Binding{Binding::Kind::kRegister, first, count}, true);
}

const NameTable::Entry* NameTable::FindRange(std::string_view name, uint32_t* member) const {
  const Entry* best = nullptr;
  size_t split = name.size();
  while (split > 1 && name.size() - split < kMaxMemberDigits && name[split - 1] >= '0' && name[split - 1] <= '9') {
    --split;
    const std::string_view digits = name.substr(split);
    if (digits.size() > 1 && digits[0] == '0') continue;
    const auto at = ranges_.find(name.substr(0, split));
    if (at == ranges_.end()) continue;
    const Entry& entry = entries_[at->second];
    uint32_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number >= entry.binding.count || (best != nullptr && best->depth >= entry.depth)) continue;
    best = &entry;
    *member = number;
  }
  return best;
}

std::optional<Binding> NameTable::Find(std::string_view name) const {
  const auto at = names_.find(name);
  const Entry* plain = at == names_.end() ? nullptr : &entries_[at->second];
  uint32_t member = 0;
  const Entry* range = FindRange(name, &member);
  if (range != nullptr && (plain == nullptr || plain->depth < range->depth))
    return Binding{Binding::Kind::kRegister, range->binding.index + member};
  if (plain != nullptr) return plain->binding;
  return std::nullopt;
}

bool IsSpecialRegister(std::string_view name) {
  const auto is = [&](std::string_view other) { return name == other; };
  if (std::any_of(std::begin(kScalarSpecials), std::end(kScalarSpecials), is)) return true;
  if (name.size() > 2 && name[name.size() - 2] == '.') {
    const char component = name.back();
    const bool known_component = component == 'x' || component == 'y' || component == 'z' || component == 'w';
    const std::string_view base = name.substr(0, name.size() - 2);
    return known_component &&
           std::find(std::begin(kVectorSpecials), std::end(kVectorSpecials), base) != std::end(kVectorSpecials);
  }
  return std::any_of(std::begin(kNumberedSpecials), std::end(kNumberedSpecials),
                     [&](const NumberedSpecial& special) { return IsNumberedSpecial(name, special); });
}

}  // namespace vgpud::ptx
