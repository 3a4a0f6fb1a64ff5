// SPDX-License-Identifier: Apache-2.0
// Slices as Chrome trace events (Trace Event Format, "JSON Object Format"), which Perfetto and chrome://tracing open:
// one row per VF, one row for world switches. Written as a stream: memory does not grow with the trace.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sched/trace.h"

namespace vgpud {

class ChromeTrace {
 public:
  using Sink = std::function<void(std::string_view)>;
  struct Row {
    VfId vf{};
    std::string name;
    std::string note = {};  // shown behind the name, in the row's title alone
  };
  // Writes the head with one row per entry of `rows`. Times are shown relative to `zero`. `gpu` and row names may hold
  // any UTF-8 text. The sink is called from the caller's thread only.
  ChromeTrace(Sink sink, std::string_view gpu, std::span<const Row> rows, TimePoint zero);

  // Did any of it happen after `zero`?
  bool Shows(const SliceRecord& record) const { return record.end > zero_; }
  // Records in the order of their sequence. What began before `zero` is cut there; what ended before it is left out.
  void Add(const SliceRecord& record);
  // A mark at `at`: `count` records are missing before it.
  void Lost(uint64_t count, TimePoint at);
  // Ends the JSON with the number of records that are in it and of those that were lost ("otherData"). Nothing may be
  // added after it.
  void Finish();

 private:
  void Event(std::string_view json);
  void Complete(uint64_t row, std::string_view name, TimePoint from, TimePoint to, std::string_view args);
  std::string_view NameOf(VfId vf) const;

  const Sink sink_;
  const TimePoint zero_;
  std::vector<std::string> names_;  // by VF number, escaped
  bool first_ = true;
  uint64_t shown_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace vgpud
