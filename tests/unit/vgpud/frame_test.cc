// SPDX-License-Identifier: Apache-2.0
// What vgpuctl top makes of vgpud's answers.
#include "tools/vgpuctl/see/frame.h"

#include <gtest/gtest.h>

namespace vgpud::tools {
namespace {

const CtlJson kGpus = CtlJson::parse(R"({"gpus": [{"name": "soft0", "policy": "strict", "vram_bytes": 8589934592,
    "vram_promised_bytes": 3221225472}]})");
const CtlJson kVfs = CtlJson::parse(R"({"vfs": [
    {"name": "b", "gpu": "soft0", "state": "ready", "utilization": 0.25, "share": 0.5, "weight": 300, "executors": 2,
     "vram_bytes": 1073741824, "vram_used_bytes": 536870912, "domain": "web-7"},
    {"name": "a", "gpu": "soft0", "state": "ready", "utilization": 0.0, "share": 0.5, "weight": 100, "executors": 0,
     "vram_bytes": 1073741824, "vram_used_bytes": 0, "tenant": "ml"},
    {"name": "gone", "state": "lost", "transient": false}]})");
const CtlJson kStats = CtlJson::parse(R"({
    "last_second": {"run_ns": 970, "switch_ns": 10, "idle_ns": 20, "stall_ns": 0},
    "vfs": [{"name": "b", "turn_wait_p99_us": 12600.0}, {"name": "a", "turn_wait_p99_us": 0.0}]})");

TEST(FrameTest, HasTheFiguresOfTheAnswers) {
  const Frame frame = FrameOf(kGpus, kVfs, kStats);
  ASSERT_EQ(1u, frame.gpus.size());
  EXPECT_DOUBLE_EQ(0.97, frame.gpus[0].run);
  EXPECT_DOUBLE_EQ(0.01, frame.gpus[0].switching);
  EXPECT_EQ(536870912u, frame.gpus[0].vram_used);
  ASSERT_EQ(3u, frame.vfs.size());
  EXPECT_EQ("running", frame.vfs[0].state);
  EXPECT_EQ(12'600'000u, frame.vfs[0].wait_p99_ns);
  EXPECT_EQ("domain web-7", frame.vfs[0].used_by);
  EXPECT_EQ("idle", frame.vfs[1].state);
  EXPECT_EQ("tenant ml", frame.vfs[1].used_by);
  EXPECT_EQ("lost", frame.vfs[2].state);
}

TEST(FrameTest, LinesAreNoWiderThanTheTerminal) {
  Frame frame = FrameOf(kGpus, kVfs, kStats);
  const FrameText wide = TextOf(frame, 200);
  EXPECT_EQ(
      "soft0 [################### ]  97.0%  switching 1.0%  host stalls 0.0%  VRAM 512MiB used, 3GiB promised of 8GiB  "
      "policy strict",
      wide.gpus[0]);
  EXPECT_EQ("VF         STATE     UTIL                SHARE  WEIGHT  WAIT-P99               VRAM  PROC  USED BY",
            wide.heading);
  EXPECT_EQ("b          running   [###       ]   25%    50%     300    12.6ms        512MiB/1GiB     2  domain web-7",
            wide.vfs[0]);
  EXPECT_EQ("gone       lost      [          ]    0%      -       -         -              0B/0B     0  -",
            wide.vfs[2]);
  for (const size_t width : {1, 20, 80})
    for (const std::string& line : TextOf(frame, width).vfs) EXPECT_LE(line.size(), width);
}

TEST(FrameTest, SortsByEachColumnAndThenByName) {
  Frame frame = FrameOf(kGpus, kVfs, kStats);
  const auto first = [&](const char* column) {
    Sort(frame, *FindSortColumn(column));
    return frame.vfs.front().name;
  };
  EXPECT_EQ("a", first("name"));
  for (const char* column : {"util", "wait", "vram", "programs"}) EXPECT_EQ("b", first(column)) << column;
  EXPECT_EQ("a", first("share"));
  EXPECT_EQ(nullptr, FindSortColumn("nosuch"));
}

TEST(FrameTest, OfSeveralGpusEachHasItsOwnFigures) {
  const CtlJson gpus = CtlJson::parse(R"({"gpus": [{"name": "left"}, {"name": "right"}]})");
  const CtlJson stats =
      CtlJson::parse(R"({"gpus": [{"name": "right", "last_second": {"run_ns": 1, "idle_ns": 1}}], "vfs": []})");
  const Frame frame = FrameOf(gpus, CtlJson::object(), stats);
  EXPECT_DOUBLE_EQ(0, frame.gpus[0].run);
  EXPECT_DOUBLE_EQ(0.5, frame.gpus[1].run);
}

}  // namespace
}  // namespace vgpud::tools
