// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/trace.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/sim/random.h"

namespace vgpud::tools::fleet {
namespace {

constexpr const char* kHead =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

Result<JobList> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in, "t.csv");
}

std::string Refusal(const std::string& text) {
  const auto list = Read(text);
  return list ? "was read" : list.error().context;
}

TEST(FleetTraceTest, ReadsWhatRanOnAGpuByArrival) {
  const auto list = Read(std::string(kHead) +
                         "late,1,1,8,1000,,LS,Succeeded,50,90,60\r\n"
                         "early,1,1,1,460,V100M16|V100M32,BE,Running,10,30,10\n"
                         "cpu,1,1,0,0,,LS,Running,0,500,0\n"
                         "pending,1,1,1,1000,,LS,Pending,5,7,\n"
                         "short,1,1,1,50,,LS,Failed,70,70,70");
  ASSERT_TRUE(list) << list.error().context;
  ASSERT_EQ(3u, list->jobs.size());
  EXPECT_EQ(1u, list->without_gpu);
  EXPECT_EQ(1u, list->never_started);
  EXPECT_EQ(500, list->end);
  EXPECT_EQ((std::vector<std::string>{"LS", "BE"}), list->tenants);
  const FleetJob& early = list->jobs[0];
  EXPECT_EQ("early", early.name);
  EXPECT_EQ(10, early.arrival);
  EXPECT_EQ(20, early.duration);
  EXPECT_EQ(460u, early.part);
  EXPECT_EQ(1u, early.tenant);
  EXPECT_TRUE(early.training);
  const FleetJob& late = list->jobs[1];
  EXPECT_EQ(50, late.arrival);
  EXPECT_EQ(30, late.duration);
  EXPECT_EQ(8u, late.gpus);
  EXPECT_FALSE(late.training);
  EXPECT_EQ(1, list->jobs[2].duration);
}

TEST(FleetTraceTest, FindsItsColumnsByName) {
  const auto list = Read("qos,scheduled_time,deletion_time,creation_time,gpu_milli,num_gpu,name\nLS,3,9,2,500,1,a\n");
  ASSERT_TRUE(list) << list.error().context;
  EXPECT_EQ(6, list->jobs[0].duration);
  EXPECT_EQ(500u, list->jobs[0].part);
}

TEST(FleetTraceTest, SaysWhichLineAndColumnIsWrongAndWhy) {
  const struct {
    const char* line;
    const char* says;
  } kRows[] = {
      {"a,1,1,1,1000,,LS,Running,5,9", "t.csv:2:29: 10 columns, the first line names 11"},
      {"a,1,1,1,1000,,LS,Running,5,9,5,", "t.csv:2:32: 12 columns, the first line names 11"},
      {"", "t.csv:2:1: 1 columns, the first line names 11"},
      {",1,1,1,1000,,LS,Running,5,9,5", "t.csv:2:1: a name has 1 to 128 characters"},
      {"a,1,1,-1,1000,,LS,Running,5,9,5", "t.csv:2:7: num_gpu must be a whole number from 0 to 64"},
      {"a,1,1,1.5,1000,,LS,Running,5,9,5", "t.csv:2:7: num_gpu must be a whole number from 0 to 64"},
      {"a,1,1,65,1000,,LS,Running,5,9,5", "t.csv:2:7: num_gpu must be a whole number from 0 to 64"},
      {"a,1,1,1,1001,,LS,Running,5,9,5", "t.csv:2:9: gpu_milli must be a whole number from 0 to 1000"},
      {"a,1,1,1,0,,LS,Running,5,9,5", "t.csv:2:9: gpu_milli is 0 although num_gpu is not"},
      {"a,1,1,2,500,,LS,Running,5,9,5", "t.csv:2:9: gpu_milli must be 1000 where num_gpu is 2"},
      {"a,1,1,1,500,,,Running,5,9,5", "t.csv:2:14: qos has 1 to 128 characters and 1000 values at most"},
      {"a,1,1,1,500,,LS,Running,,9,5", "t.csv:2:25: creation_time must be a whole number from 0 to 315360000"},
      {"a,1,1,1,500,,LS,Running,99999999999999999999,9,5",
       "t.csv:2:25: creation_time must be a whole number from 0 to 315360000"},
      {"a,1,1,1,500,,LS,Running,5,4,5", "t.csv:2:27: deletion_time is before creation_time"},
      {"a,1,1,1,500,,LS,Running,5,9,4", "t.csv:2:29: scheduled_time is not between creation_time and deletion_time"},
      {"a,1,1,1,500,,LS,Running,5,9,10", "t.csv:2:29: scheduled_time is not between creation_time and deletion_time"},
      {"\"a\",1,1,1,500,,LS,Running,5,9,5", "t.csv:2:1: only plain printable characters without \" are read"},
      {"a,1,1\t,1,500,,LS,Running,5,9,5", "t.csv:2:6: only plain printable characters without \" are read"},
      {"a,1,1,1,500,,L\x80,Running,5,9,5", "t.csv:2:15: only plain printable characters without \" are read"},
  };
  for (const auto& row : kRows) EXPECT_EQ(row.says, Refusal(std::string(kHead) + row.line + "\n")) << row.line;
  EXPECT_EQ("t.csv:2:4097: a trace has 4096 characters in a line at most", Refusal(kHead + std::string(1 << 20, 'a')));
}

TEST(FleetTraceTest, EveryWrongLineIsNamedUpToTen) {
  std::string text = kHead;
  for (int i = 0; i < 25; ++i) text += "a,1,1,1,1000,,LS,Running,5,9,5\nwrong\n";
  const std::string says = Refusal(text);
  EXPECT_EQ(9, std::count(says.begin(), says.end(), '\n'));
  EXPECT_NE(std::string::npos, says.find("t.csv:3:6: "));
  EXPECT_NE(std::string::npos, says.find("t.csv:21:6: "));
}

TEST(FleetTraceTest, AFileThatIsNoTraceIsRefused) {
  EXPECT_EQ("t.csv:1:1: the file is empty; its first line names the columns", Refusal(""));
  EXPECT_EQ("t.csv:1:4097: a trace has 4096 characters in a line at most", Refusal(std::string(1 << 20, '\0')));
  EXPECT_EQ("t.csv:1:1: no column \"num_gpu\"", Refusal("name,gpus\n"));
  EXPECT_EQ("t.csv:1:1: no job in this file ran on a GPU", Refusal(kHead));
  const auto none = ReadTrace("/nonexistent/trace.csv");
  ASSERT_FALSE(none);
  EXPECT_NE(std::string::npos, none.error().context.find("/nonexistent/trace.csv"));
}

// What a mutation leaves readable obeys the limits, everything else is refused with its place.
TEST(FleetTraceTest, MutatedFilesAreReadOrRefused) {
  const std::string good = std::string(kHead) + "a,1,1,1,460,,LS,Running,10,30,10\nb,1,1,8,1000,,BE,Running,5,9,7\n";
  Random random(1, 1);
  int read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (auto n = 1 + random.Next() % 3; n > 0; --n) {
      const size_t at = random.Next() % text.size();
      const uint64_t kind = random.Next() % 3;
      if (kind == 0) text[at] = static_cast<char>(random.Next());
      if (kind == 1) text.erase(at, 1 + random.Next() % 5);
      if (kind == 2) text.insert(at, 1, "0123456789,-.\n\"\r"[random.Next() % 17]);
    }
    const auto list = Read(text);
    list ? ++read : ++refused;
    if (!list) {
      ASSERT_TRUE(list.error().context.starts_with("t.csv:")) << text;
      continue;
    }
    for (const FleetJob& job : list->jobs) {
      ASSERT_TRUE(job.gpus >= 1 && job.gpus <= 64 && job.part >= 1 && job.part <= 1000) << text;
      ASSERT_TRUE(job.gpus == 1 || job.part == 1000) << text;
      ASSERT_TRUE(job.arrival >= 0 && job.duration >= 1 && job.arrival + job.duration <= list->end + 1) << text;
      ASSERT_LT(job.tenant, list->tenants.size()) << text;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace vgpud::tools::fleet
