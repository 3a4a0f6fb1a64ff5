// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/trace_dump.h"

#include <algorithm>
#include <utility>

namespace vgpud::daemon {
namespace {

constexpr int kRecordsPerPiece = 512;
constexpr int kLooksPerPiece = 16 * kRecordsPerPiece;  // at records too old to be shown

std::string AboutDomain(const VfDomain& domain) {
  return domain.name.empty() ? "" : "domain " + domain.name + " " + domain.uuid;
}

// A row per tenure, numbered in the order in which the VFs came.
std::vector<ChromeTrace::Row> Rows(const std::vector<Tenure>& tenures, TimePoint zero) {
  std::vector<ChromeTrace::Row> rows;
  for (uint32_t i = 0; i < tenures.size(); ++i)
    if (tenures[i].until >= zero) rows.push_back({VfId{i}, tenures[i].name, AboutDomain(tenures[i].domain)});
  return rows;
}

}  // namespace

TraceDump::TraceDump(const SliceTrace& trace, const std::string& gpu, std::vector<Tenure> tenures, TimePoint zero,
                     uint64_t first)
    : tenures_(std::move(tenures)),
      end_(trace.appended()),
      next_(first),
      reader_(trace),
      piece_(&head_),
      chrome_([this](std::string_view text) { piece_->append(text); }, gpu, Rows(tenures_, zero), zero) {}

VfId TraceDump::RowOf(const SliceRecord& record) const {
  for (uint32_t i = 0; i < tenures_.size(); ++i)
    if (tenures_[i].vf == record.vf && record.start >= tenures_[i].from && record.start <= tenures_[i].until)
      return VfId{i};
  return VfId{static_cast<uint32_t>(tenures_.size())};
}

void TraceDump::CountLost(const SliceRecord& next) {
  if (next.sequence > next_) chrome_.Lost(next.sequence - next_, next.start);
  next_ = std::max(next_, next.sequence + 1);
}

bool TraceDump::Next(std::string* piece) {
  piece->append(std::exchange(head_, {}));
  piece_ = piece;
  SliceRecord record;
  for (int shown = 0, looks = 0; shown < kRecordsPerPiece && looks < kLooksPerPiece; ++looks) {
    const bool more = reader_.Next(&record);
    if (!more || record.sequence >= end_) {
      if (more && end_ > next_) chrome_.Lost(end_ - next_, record.start);
      chrome_.Finish();
      return false;
    }
    if (!chrome_.Shows(record)) {
      next_ = std::max(next_, record.sequence + 1);
      continue;
    }
    CountLost(record);
    record.vf = RowOf(record);
    chrome_.Add(record);
    ++shown;
  }
  if (piece->empty()) piece->append("\n");
  return true;
}

}  // namespace vgpud::daemon
