// SPDX-License-Identifier: Apache-2.0
#include "sched/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace vgpud {
namespace {

constexpr uint64_t kSwitchRow = 1;
constexpr uint64_t kFirstVfRow = 2;

uint64_t RowOf(VfId vf) { return uint64_t{Raw(vf)} + kFirstVfRow; }

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Microseconds, the unit of the format, with all nanoseconds.
std::string Microseconds(Ns time) { return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000); }

std::string Join(std::initializer_list<std::string_view> parts) {
  std::string joined;
  for (const std::string_view part : parts) joined += part;
  return joined;
}

std::string Field(std::string_view name, uint64_t value) { return Join({"\"", name, "\":", std::to_string(value)}); }
std::string Name(std::string_view name) { return Join({"\"name\":\"", name, "\""}); }
std::string On(uint64_t row) { return Join({"\"pid\":1,", Field("tid", row)}); }

std::string Metadata(std::string_view kind, uint64_t row, std::string_view args) {
  return Join({"{\"ph\":\"M\",", On(row), ",", Name(kind), ",\"args\":{", args, "}}"});
}

}  // namespace

ChromeTrace::ChromeTrace(Sink sink, std::string_view gpu, std::span<const Row> rows, TimePoint zero)
    : sink_(std::move(sink)), zero_(zero) {
  sink_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  Event(Metadata("process_name", kSwitchRow, Name(Escaped(gpu))));
  Event(Metadata("thread_name", kSwitchRow, Name("world switches")));
  Event(Metadata("thread_sort_index", kSwitchRow, "\"sort_index\":-1"));
  for (const Row& row : rows) {
    if (Raw(row.vf) >= names_.size()) names_.resize(Raw(row.vf) + 1);
    names_[Raw(row.vf)] = Escaped(row.name);
    Event(Metadata("thread_name", RowOf(row.vf),
                   Name(Join({"VF ", std::to_string(Raw(row.vf)), " ", names_[Raw(row.vf)],
                              row.note.empty() ? "" : ", ", Escaped(row.note)}))));
    Event(Metadata("thread_sort_index", RowOf(row.vf), Field("sort_index", Raw(row.vf))));
  }
}

void ChromeTrace::Event(std::string_view json) {
  if (!first_) sink_(",\n");
  first_ = false;
  sink_(json);
}

std::string_view ChromeTrace::NameOf(VfId vf) const {
  return Raw(vf) < names_.size() && !names_[Raw(vf)].empty() ? std::string_view(names_[Raw(vf)]) : "?";
}

void ChromeTrace::Complete(uint64_t row, std::string_view name, TimePoint from, TimePoint to, std::string_view args) {
  from = std::max(from, zero_);
  if (to <= from) return;
  Event(Join({"{\"ph\":\"X\",", On(row), ",", Name(name), ",\"ts\":", Microseconds(from - zero_),
              ",\"dur\":", Microseconds(to - from), ",\"args\":{", args, "}}"}));
}

void ChromeTrace::Add(const SliceRecord& record) {
  if (!Shows(record)) return;
  ++shown_;
  const std::string sequence = Field("sequence", record.sequence);
  Complete(kSwitchRow, Join({"to ", NameOf(record.vf)}), record.start - record.switch_time, record.start, sequence);
  Complete(RowOf(record.vf), TurnEndName(record.reason), record.start, record.end,
           Join({sequence, ",", Field("round", record.round), ",",
                 Field("host_delay_ns", static_cast<uint64_t>(record.host_delay.count())), ",",
                 Field("thought_ns", static_cast<uint64_t>(record.thought.count())), ",",
                 Field("waited_ns", static_cast<uint64_t>(record.waited.count()))}));
}

void ChromeTrace::Lost(uint64_t count, TimePoint at) {
  if (count == 0) return;
  lost_ += count;
  const std::string time = Microseconds(std::max(Ns{0}, at - zero_));
  Event(Join({"{\"ph\":\"i\",\"s\":\"g\",", On(kSwitchRow), ",", Name(Join({std::to_string(count), " records lost"})),
              ",\"ts\":", time, "}"}));
}

void ChromeTrace::Finish() {
  sink_(Join({"\n],\"otherData\":{", Field("turns", shown_), ",", Field("lost", lost_), "}}\n"}));
}

}  // namespace vgpud
