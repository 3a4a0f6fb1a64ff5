// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/trace_dump.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vgpud::daemon {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr TimePoint kStart{Ns{1'000'000'000}};

// Turns of 900 us, one each ms, VFs 0 and 1 in turn.
void Fill(SliceTrace& trace, int turns) {
  for (int i = 0; i < turns; ++i)
    trace.Append({.vf = VfId{static_cast<uint32_t>(i % 2)},
                  .reason = TurnEnd::kSliceEnd,
                  .start = kStart + i * 1ms,
                  .end = kStart + i * 1ms + 900us,
                  .switch_time = i == 0 ? 0us : 100us,
                  .round = static_cast<uint64_t>(i / 2)});
}

std::vector<Tenure> TwoVfs() { return {{VfId{0}, "a", kStart}, {VfId{1}, "b", kStart}}; }

// All pieces, and how many.
Json ReadAll(TraceDump& dump, int* pieces = nullptr) {
  std::string text;
  for (bool more = true; more;) {
    std::string piece;
    more = dump.Next(&piece);
    EXPECT_FALSE(piece.empty());
    text += piece;
    if (pieces != nullptr) ++*pieces;
  }
  const Json json = Json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

std::map<std::string, int> TurnsPerRow(const Json& trace) {
  std::map<int, std::string> names;
  std::map<std::string, int> turns;
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") ++turns[names.count(event["tid"]) ? names[event["tid"]] : "?"];
  return turns;
}

TEST(TraceDumpTest, TurnsComeInPiecesOneRowPerVf) {
  SliceTrace trace{4096};
  Fill(trace, 2000);
  TraceDump dump{trace, "soft0", TwoVfs(), kStart, 0};
  int pieces = 0;
  const Json json = ReadAll(dump, &pieces);
  EXPECT_GE(pieces, 4);
  EXPECT_EQ((std::map<std::string, int>{{"VF 0 a", 1000}, {"VF 1 b", 1000}, {"world switches", 1999}}),
            TurnsPerRow(json));
  EXPECT_EQ(2000, json["otherData"]["turns"]);
  EXPECT_EQ(0, json["otherData"]["lost"]);
}

TEST(TraceDumpTest, TurnsThatEndWhileItIsWrittenAreNotInIt) {
  SliceTrace trace{4096};
  Fill(trace, 10);
  TraceDump dump{trace, "soft0", TwoVfs(), kStart, 0};
  Fill(trace, 10);
  EXPECT_EQ(10, ReadAll(dump)["otherData"]["turns"]);
}

TEST(TraceDumpTest, WhatEndedBeforeIsLeftOutAndIsNotLost) {
  SliceTrace trace{65'536};
  Fill(trace, 20'000);
  TraceDump dump{trace, "soft0", TwoVfs(), kStart + 19'989ms + 900us, 19'900};
  const Json json = ReadAll(dump);
  EXPECT_EQ(10, json["otherData"]["turns"]);
  EXPECT_EQ(0, json["otherData"]["lost"]);
}

TEST(TraceDumpTest, WhatTheRingNoLongerHoldsIsLost) {
  SliceTrace trace{64};
  Fill(trace, 1000);
  TraceDump dump{trace, "soft0", TwoVfs(), kStart, 100};
  const Json json = ReadAll(dump);
  EXPECT_EQ(64, json["otherData"]["turns"]);
  EXPECT_EQ(1000 - 64 - 100, json["otherData"]["lost"]);
  int marks = 0;
  for (const Json& event : json["traceEvents"]) marks += event["name"] == "836 records lost";
  EXPECT_EQ(1, marks);
}

TEST(TraceDumpTest, WhatIsOverwrittenWhileItIsReadIsLost) {
  SliceTrace trace{1024};
  Fill(trace, 1024);
  TraceDump dump{trace, "soft0", TwoVfs(), kStart, 0};
  std::string text;
  EXPECT_TRUE(dump.Next(&text));
  Fill(trace, 5000);
  EXPECT_FALSE(dump.Next(&text));
  const Json json = Json::parse(text, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << text;
  EXPECT_EQ(512, json["otherData"]["turns"]);
  EXPECT_EQ(512, json["otherData"]["lost"]);
}

TEST(TraceDumpTest, ANumberThatIsUsedAgainIsAnotherRow) {
  SliceTrace trace{64};
  Fill(trace, 20);
  TraceDump dump{trace,
                 "soft0",
                 {{VfId{0}, "old", kStart, kStart + 9500us}, {VfId{1}, "b", kStart}, {VfId{0}, "new", kStart + 9600us}},
                 kStart,
                 0};
  EXPECT_EQ((std::map<std::string, int>{{"VF 0 old", 5}, {"VF 1 b", 10}, {"VF 2 new", 5}, {"world switches", 19}}),
            TurnsPerRow(ReadAll(dump)));
}

TEST(TraceDumpTest, AnEmptyTraceIsValid) {
  SliceTrace trace{64};
  TraceDump dump{trace, "soft0", {}, kStart, 0};
  EXPECT_EQ(0, ReadAll(dump)["otherData"]["turns"]);
}

TEST(TraceDumpTest, WhatIsTooOldIsSkippedInPiecesOfItsOwn) {
  SliceTrace trace{65'536};
  Fill(trace, 20'000);
  TraceDump dump{trace, "soft0", TwoVfs(), kStart + 19'990ms, 0};
  int pieces = 0;
  EXPECT_EQ(10, ReadAll(dump, &pieces)["otherData"]["turns"]);
  EXPECT_EQ(3, pieces) << "8192 looks each";
}

TEST(TraceDumpTest, APieceHas512Turns) {
  SliceTrace trace{4096};
  for (const auto& [turns, expected] : {std::pair{511, 1}, {512, 2}, {1023, 2}}) {
    SliceTrace some{4096};
    Fill(some, turns);
    TraceDump dump{some, "soft0", TwoVfs(), kStart, 0};
    int pieces = 0;
    EXPECT_EQ(turns, ReadAll(dump, &pieces)["otherData"]["turns"]);
    EXPECT_EQ(expected, pieces) << turns;
  }
}

TEST(TraceDumpTest, ATenureHasItsFirstAndItsLastMoment) {
  SliceTrace trace{64};
  Fill(trace, 10);  // VF 0 at 0, 2, 4, 6, 8 ms
  const auto turns = [&](TimePoint from, TimePoint until) {
    TraceDump dump{trace, "soft0", {{VfId{0}, "a", from, until}}, kStart, 0};
    return TurnsPerRow(ReadAll(dump))["VF 0 a"];
  };
  EXPECT_EQ(3, turns(kStart + 2ms, kStart + 6ms));
  EXPECT_EQ(1, turns(kStart + 2ms + 1ns, kStart + 6ms - 1ns));
}

TEST(TraceDumpTest, ATurnThatEndsAtTheBeginningIsTooOld) {
  SliceTrace trace{64};
  Fill(trace, 10);
  const auto turns = [&](TimePoint zero) {
    TraceDump dump{trace, "soft0", TwoVfs(), zero, 0};
    return ReadAll(dump)["otherData"]["turns"];
  };
  EXPECT_EQ(10, turns(kStart));
  EXPECT_EQ(9, turns(kStart + 900us));
  EXPECT_EQ(10, turns(kStart + 900us - 1ns));
}

}  // namespace
}  // namespace vgpud::daemon
