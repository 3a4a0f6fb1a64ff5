// SPDX-License-Identifier: Apache-2.0
#include "sched/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "sched/chrome_trace.h"

namespace vgpud::tools {
namespace {

using namespace std::chrono_literals;

TimePoint At(Ns since) { return TimePoint{since}; }

SliceRecord Turn(uint32_t vf, Ns start, Ns end, TurnEnd reason = TurnEnd::kSliceEnd, Ns switch_time = 0ns) {
  return {.vf = VfId{vf}, .reason = reason, .start = At(start), .end = At(end), .switch_time = switch_time, .round = 7};
}

std::vector<SliceRecord> ReadAll(SliceTrace::Reader& reader) {
  std::vector<SliceRecord> all;
  for (SliceRecord r; reader.Next(&r);) all.push_back(r);
  return all;
}

TEST(SliceTraceTest, GivesBackWhatWasAppendedInOrder) {
  SliceTrace trace{4};
  trace.Append(Turn(3, 1ms, 2ms, TurnEnd::kHang, 20us));
  trace.Append(Turn(0xfffffffe, 2ms, 5ms, TurnEnd::kYield));
  SliceTrace::Reader reader{trace};
  const auto all = ReadAll(reader);
  ASSERT_EQ(2u, all.size());
  SliceRecord first = Turn(3, 1ms, 2ms, TurnEnd::kHang, 20us);
  EXPECT_EQ(first, all[0]);
  EXPECT_EQ(1u, all[1].sequence);
  EXPECT_EQ(VfId{0xfffffffe}, all[1].vf);
  EXPECT_EQ(0u, reader.lost());
}

TEST(SliceTraceTest, ALateReaderStartsAtTheOldestRecordHeld) {
  SliceTrace trace{4};
  for (int i = 0; i < 10; ++i) trace.Append(Turn(0, 1ms * i, 1ms * i + 1us));
  SliceTrace::Reader reader{trace};
  const auto all = ReadAll(reader);
  ASSERT_EQ(4u, all.size());
  EXPECT_EQ(6u, all[0].sequence);
  EXPECT_EQ(0u, reader.lost());
}

TEST(SliceTraceTest, AnOvertakenReaderCountsWhatItLost) {
  SliceTrace trace{4};
  trace.Append(Turn(0, 0ms, 1us));
  SliceTrace::Reader reader{trace};
  EXPECT_EQ(1u, ReadAll(reader).size());
  for (int i = 0; i < 10; ++i) trace.Append(Turn(0, 1ms * i, 1ms * i + 1us));
  const auto all = ReadAll(reader);
  ASSERT_EQ(4u, all.size());
  EXPECT_EQ(7u, all[0].sequence);
  EXPECT_EQ(6u, reader.lost());
}

TEST(SliceTraceTest, CapacityIsRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(1u, SliceTrace{0}.capacity());
  EXPECT_EQ(8u, SliceTrace{5}.capacity());
}

TEST(SliceTraceTest, KeepsEveryFieldAndGivesTheSequence) {
  SliceTrace trace{2};
  SliceTrace::Reader reader{trace};
  SliceRecord read;
  EXPECT_FALSE(reader.Next(&read));
  for (uint64_t i = 0; i < 5; ++i) {
    SliceRecord record{.sequence = 99,
                       .vf = VfId{1000},
                       .reason = TurnEnd::kRevoke,
                       .start = At(-7ns),
                       .end = At(1ns),
                       .switch_time = 2ns,
                       .host_delay = 3ns,
                       .thought = 4ns,
                       .waited = 5ns,
                       .round = 4};
    trace.Append(record);
    EXPECT_EQ(i + 1, trace.appended());
    ASSERT_TRUE(reader.Next(&read));
    record.sequence = i;
    EXPECT_EQ(record, read);
    EXPECT_FALSE(reader.Next(&read));
  }
  EXPECT_EQ(0u, reader.lost());
}

TEST(SliceTraceTest, AReaderThatIsAFullRingBehindLostNothing) {
  SliceTrace trace{4};
  SliceTrace::Reader reader{trace};
  for (int i = 0; i < 4; ++i) trace.Append(Turn(0, 0ms, 1us));
  EXPECT_EQ(4u, ReadAll(reader).size());
  EXPECT_EQ(0u, reader.lost());
  for (int i = 0; i < 5; ++i) trace.Append(Turn(0, 0ms, 1us));
  EXPECT_EQ(4u, ReadAll(reader).size());
  EXPECT_EQ(1u, reader.lost());
}

TEST(SliceTraceTest, EveryEndOfATurnHasAName) {
  EXPECT_EQ("slice end", TurnEndName(TurnEnd::kSliceEnd));
  EXPECT_EQ("yield", TurnEndName(TurnEnd::kYield));
  EXPECT_EQ("revoke", TurnEndName(TurnEnd::kRevoke));
  EXPECT_EQ("hang", TurnEndName(TurnEnd::kHang));
  EXPECT_EQ("unknown", TurnEndName(static_cast<TurnEnd>(4)));
}

TEST(SliceTraceTest, ARecordOfNothingIsEmpty) {
  const SliceRecord record;
  EXPECT_EQ(0u, record.sequence);
  EXPECT_EQ(TurnEnd::kSliceEnd, record.reason);
  EXPECT_EQ(0ns, record.switch_time);
  EXPECT_EQ(0ns, record.host_delay);
  EXPECT_EQ(0ns, record.thought);
  EXPECT_EQ(0ns, record.waited);
  EXPECT_EQ(0u, record.round);
}

// All fields of a record are made from its sequence, so that a mixture of two records is seen.
TEST(SliceTraceTest, ReadersOfARunningTraceSeeWholeRecordsOrCountThemAsLost) {
  constexpr uint64_t kRecords = 200'000;
  SliceTrace trace{64};
  SliceTrace::Reader reader{trace};
  std::thread writer([&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      const Ns t{static_cast<int64_t>(i)};
      trace.Append({.vf = VfId{static_cast<uint32_t>(i)},
                    .start = At(2 * t),
                    .end = At(3 * t),
                    .switch_time = 4 * t,
                    .round = 5 * i});
    }
  });
  uint64_t seen = 0;
  uint64_t mixed = 0;
  int64_t last = -1;
  for (SliceRecord r; seen + reader.lost() < kRecords;) {
    if (!reader.Next(&r)) continue;
    ++seen;
    const Ns t{static_cast<int64_t>(r.sequence)};
    mixed += Raw(r.vf) != r.sequence || r.start != At(2 * t) || r.end != At(3 * t) || r.switch_time != 4 * t ||
             r.round != 5 * r.sequence || t.count() <= last;
    last = t.count();
  }
  writer.join();
  EXPECT_EQ(0u, mixed);
  EXPECT_EQ(kRecords, seen + reader.lost());
}

class ChromeTraceTest : public testing::Test {
 protected:
  nlohmann::json Written(const std::vector<SliceRecord>& records, TimePoint zero, uint64_t lost = 0) {
    std::string text;
    const ChromeTrace::Row rows[] = {{VfId{0}, "a \"quoted\\name\"\n"}, {VfId{1}, "b"}};
    ChromeTrace chrome([&](std::string_view part) { text += part; }, "soft GPU", rows, zero);
    for (const SliceRecord& r : records) chrome.Add(r);
    chrome.Lost(lost, zero + 1ms);
    chrome.Finish();
    return nlohmann::json::parse(text).at("traceEvents");
  }
  static std::vector<nlohmann::json> Of(const nlohmann::json& events, std::string_view phase) {
    std::vector<nlohmann::json> found;
    for (const auto& e : events)
      if (e.at("ph") == phase) found.push_back(e);
    return found;
  }
};

TEST_F(ChromeTraceTest, RowsAreNamed) {
  const auto events = Written({}, At(0s));
  EXPECT_EQ("world switches", events[1]["args"]["name"]);
  EXPECT_EQ("VF 0 a \"quoted\\name\"\n", events[3]["args"]["name"]);
  EXPECT_EQ(3, events[5]["tid"]);
}

TEST_F(ChromeTraceTest, ATurnAndTheSwitchBeforeItAreTwoEventsInTwoRows) {
  const auto events = Of(Written({Turn(1, 10ms + 7ns, 12ms, TurnEnd::kYield, 250us)}, At(1ms)), "X");
  ASSERT_EQ(2u, events.size());
  EXPECT_EQ(1, events[0]["tid"]);
  EXPECT_EQ("to b", events[0]["name"]);
  EXPECT_DOUBLE_EQ(8750.007, events[0]["ts"]);
  EXPECT_DOUBLE_EQ(250, events[0]["dur"]);
  EXPECT_EQ(3, events[1]["tid"]);
  EXPECT_EQ("yield", events[1]["name"]);
  EXPECT_DOUBLE_EQ(9000.007, events[1]["ts"]);
  EXPECT_DOUBLE_EQ(1999.993, events[1]["dur"]);
  EXPECT_EQ(7, events[1]["args"]["round"]);
}

TEST_F(ChromeTraceTest, WhatBeganBeforeTheStartIsCutThere) {
  const auto events = Of(Written({Turn(0, 1ms, 2ms), Turn(0, 2ms, 8ms, TurnEnd::kSliceEnd, 1us)}, At(5ms)), "X");
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(0, events[0]["ts"]);
  EXPECT_EQ(3000, events[0]["dur"]);
}

TEST_F(ChromeTraceTest, WithoutASwitchThereIsOnlyTheTurn) {
  const auto events = Of(Written({Turn(5, 1ms, 2ms)}, At(0s)), "X");
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(7, events[0]["tid"]);
}

TEST_F(ChromeTraceTest, ATurnOfAVfWithoutANameIsOfAQuestionMark) {
  std::string text;
  const ChromeTrace::Row rows[] = {{VfId{1}, "b"}};
  ChromeTrace chrome([&](std::string_view part) { text += part; }, "g", rows, At(0s));
  for (const uint32_t vf : {0, 1, 2}) chrome.Add(Turn(vf, 1ms, 2ms, TurnEnd::kYield, 1us));
  chrome.Finish();
  std::vector<std::string> names;
  for (const auto& e : Of(nlohmann::json::parse(text).at("traceEvents"), "X")) names.push_back(e.at("name"));
  EXPECT_EQ((std::vector<std::string>{"to ?", "yield", "to b", "yield", "to ?", "yield"}), names);
}

// To the byte, as other programs read it.
TEST_F(ChromeTraceTest, TheWholeFile) {
  std::string text;
  const ChromeTrace::Row rows[] = {{VfId{2}, "a b\x1f\"c"}};
  ChromeTrace chrome([&](std::string_view part) { text += part; }, "G", rows, At(1ms));
  SliceRecord turn = Turn(2, 2ms, 3ms + 5ns, TurnEnd::kHang, 1us);
  turn.sequence = 8;
  turn.host_delay = 9ns;
  turn.thought = 10ns;
  turn.waited = 11ns;
  chrome.Add(Turn(2, 0ms, 1ms));  // ended when the trace begins
  chrome.Add(turn);
  chrome.Lost(0, At(2ms));
  chrome.Lost(1, At(0ms));
  chrome.Lost(30, At(4ms));
  chrome.Finish();
  EXPECT_EQ(R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"G"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"world switches"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":-1}},
{"ph":"M","pid":1,"tid":4,"name":"thread_name","args":{"name":"VF 2 a b\u001f\"c"}},
{"ph":"M","pid":1,"tid":4,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":1,"tid":1,"name":"to a b\u001f\"c","ts":999.000,"dur":1.000,"args":{"sequence":8}},
{"ph":"X","pid":1,"tid":4,"name":"hang","ts":1000.000,"dur":1000.005,"args":{"sequence":8,"round":7,"host_delay_ns":9,"thought_ns":10,"waited_ns":11}},
{"ph":"i","s":"g","pid":1,"tid":1,"name":"1 records lost","ts":0.000},
{"ph":"i","s":"g","pid":1,"tid":1,"name":"30 records lost","ts":3000.000}
],"otherData":{"turns":1,"lost":31}}
)",
            text);
}

TEST_F(ChromeTraceTest, LossIsMarked) {
  EXPECT_TRUE(Of(Written({}, At(0s)), "i").empty());
  EXPECT_EQ("12 records lost", Of(Written({}, At(0s), 12), "i").at(0)["name"]);
}

}  // namespace
}  // namespace vgpud::tools
