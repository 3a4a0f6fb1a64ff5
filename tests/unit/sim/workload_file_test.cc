// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/workload_file.h"

#include <gtest/gtest.h>

#include "tools/sim/toml_table.h"

namespace vgpud::tools {
namespace {

using namespace std::chrono_literals;

TEST(LengthTest, ReadsAndWritesUnits) {
  EXPECT_EQ(1500ns, ParseLength("1.5us"));
  EXPECT_EQ(8h, ParseLength("8h"));
  EXPECT_EQ(0ns, ParseLength("0s"));
  EXPECT_EQ("1500us", FormatLength(1500us));
  EXPECT_EQ("2ms", FormatLength(2ms));
  for (const char* wrong : {"", "2", "ms", "-1ms", "2 ms", "nans", "1e99s", "infs"})
    EXPECT_FALSE(ParseLength(wrong)) << wrong;
}

TEST(WorkloadFileTest, ReadsEverything) {
  const auto w = ParseWorkload(R"(
duration = "1h"
start = "08:30"
seed = 42
[gpu]
base_slice = "4ms"
policy = "reserve"
preempt = "kernel"
switch_cost = { min = "10us", max = "30us" }
preempt_latency = { samples = ["60us", "10us", "20us"] }
take_back_alone = 1
[[group]]
name = "team"
weight = 300
[[vf]]
name = "dev"
count = 2
guarantee = 0.25
limit = 0.75
group = "team"
arrival = "bursty"
work = "100ms"
duty = 0.5
hours = "20:00-08:00"
[[vf]]
name = "other"
slice = "3ms"
joins = "5s"
leaves = "9s"
hang_every = { mean = "10s" }
[[change]]
at = "7s"
vf = "dev2"
weight = 200
)",
                               "w.toml");
  ASSERT_TRUE(w) << w.error().context;
  EXPECT_EQ(1h, w->duration);
  EXPECT_EQ(8h + 30min, w->time_of_day);
  EXPECT_EQ(42u, w->seed);
  EXPECT_EQ(4ms, w->gpu.options.base_slice);
  EXPECT_EQ("reserve", w->gpu.policy);
  EXPECT_TRUE(w->gpu.preempts_at_kernel_end);
  EXPECT_EQ(20us, w->gpu.switch_cost.Mean());
  EXPECT_EQ(30us, w->gpu.preempt_latency.Mean());
  EXPECT_TRUE(w->gpu.take_back_alone);
  EXPECT_EQ(300u, w->gpu.options.group_weights[0]);
  ASSERT_EQ(3u, w->vfs.size());
  EXPECT_EQ("dev2", w->vfs[1].name);
  EXPECT_EQ(VfId{1}, w->vfs[1].view.vf);
  EXPECT_EQ(250'000u, w->vfs[1].view.guarantee);
  EXPECT_EQ(750'000u, w->vfs[1].view.limit);
  EXPECT_EQ(0, w->vfs[1].view.group);
  EXPECT_EQ(100ms, w->vfs[1].sleep.Mean());
  EXPECT_EQ(20h, w->vfs[1].hours->from);
  EXPECT_EQ(kNoGroup, w->vfs[2].view.group);
  EXPECT_EQ(3ms, w->vfs[2].view.slice);
  ASSERT_EQ(3u, w->changes.size());
  EXPECT_EQ(ChangeAction::kJoin, w->changes[0].action);
  EXPECT_EQ(200u, w->changes[1].weight);
  EXPECT_EQ(ChangeAction::kLeave, w->changes[2].action);
}

struct Wrong {
  const char* name;
  const char* toml;
  std::vector<const char*> says;  // each is part of the one line
};
class WrongFileTest : public testing::TestWithParam<Wrong> {};
TEST_P(WrongFileTest, IsRefusedInOneLineThatNamesLineFieldValueAndRange) {
  const auto w = ParseWorkload(GetParam().toml, "w.toml");
  ASSERT_FALSE(w);
  for (const char* part : GetParam().says)
    EXPECT_NE(std::string::npos, w.error().context.find(part)) << part << "\nin: " << w.error().context;
  EXPECT_EQ(std::string::npos, w.error().context.find('\n')) << w.error().context;
}
INSTANTIATE_TEST_SUITE_P(
    , WrongFileTest,
    testing::ValuesIn(std::vector<Wrong>{
        {"weight_0", "[[vf]]\nname = \"a\"\nweight = 0\n", {"w.toml:3:", "vf a", "weight = 0", "1 to 10000"}},
        {"slice_0", "[[vf]]\nname = \"a\"\nslice = \"0us\"\n", {"w.toml:3:", "slice = ", "100us to 1s"}},
        {"number_without_unit", "[gpu]\nbase_slice = 2\n", {"w.toml:2:", "gpu: base_slice = 2", "\"2ms\""}},
        {"unknown_key", "[gpu]\nslices = 2\n", {"w.toml:2:", "slices = 2", "there are", "base_slice"}},
        {"unknown_top_key", "gpus = 2\n", {"w.toml:1:", "gpus = 2", "vf"}},
        {"unknown_policy", "[gpu]\npolicy = \"fair\"\n", {"w.toml:2:", "fair", "strict"}},
        {"unknown_arrival", "[[vf]]\nname = \"a\"\narrival = \"often\"\n", {":3:", "often", "bursty"}},
        {"unknown_vf", "[[vf]]\nname = \"a\"\n[[change]]\nat = \"1s\"\nvf = \"b\"\nweight = 2\n", {":5:", "\"b\""}},
        {"empty_change", "[[vf]]\nname = \"a\"\n[[change]]\nat = \"1s\"\nvf = \"a\"\n", {"nothing is changed"}},
        {"no_vf", "duration = \"1s\"\n", {"vf", "at least"}},
        {"no_name", "[[vf]]\nweight = 3\n", {":1:", "name"}},
        {"same_name", "[[vf]]\nname = \"a\"\n[[vf]]\nname = \"a\"\n", {":4:", "another VF"}},
        {"duty_and_sleep",
         "[[vf]]\nname = \"a\"\narrival = \"bursty\"\nduty = 0.1\nsleep = \"1s\"\n",
         {":4:", "duty", "not both"}},
        {"duty_of_always", "[[vf]]\nname = \"a\"\nduty = 0.1\n", {":3:", "duty", "bursty"}},
        {"duty_1", "[[vf]]\nname = \"a\"\narrival = \"bursty\"\nduty = 1.0\n", {":4:", "duty = 1", "0.9999"}},
        {"bad_hours", "[[vf]]\nname = \"a\"\nhours = \"9-18\"\n", {":3:", "9-18", "09:00-18:00"}},
        {"bad_distribution", "[[vf]]\nname = \"a\"\nwork = { mean = \"1ms\", p99 = \"2ms\" }\n", {":3:", "work"}},
        {"backwards", "[[vf]]\nname = \"a\"\nwork = { min = \"3ms\", max = \"2ms\" }\n", {":3:", "max", "3ms"}},
        {"no_samples", "[[vf]]\nname = \"a\"\nwork = { samples = [] }\n", {":3:", "samples", "1 to 1000 lengths"}},
        {"samples_of_numbers",
         "[[vf]]\nname = \"a\"\nwork = { samples = [\"1ms\", 2] }\n",
         {":3:", "samples = 2", "\"2ms\""}},
        {"no_list", "[[vf]]\nname = \"a\"\nwork = { samples = \"1ms\" }\n", {":3:", "samples = ", "a list"}},
        {"samples_and_mean",
         "[[vf]]\nname = \"a\"\nwork = { samples = [\"1ms\", \"2ms\"], mean = \"1ms\" }\n",
         {":3:", "work", "{ samples }"}},
        {"take_back_alone", "[gpu]\ntake_back_alone = 2\n", {":2:", "take_back_alone = 2", "0 to 1"}},
        {"guarantees",
         "[gpu]\npolicy = \"reserve\"\n[[vf]]\nname = \"a\"\ncount = 4\nguarantee = 0.25\n",
         {"guarantee", "1.000"}},
        {"guarantee_without_reserve", "[[vf]]\nname = \"a\"\nguarantee = 0.25\n", {"guarantee", "reserve"}},
        {"vram", "[gpu]\nvram = \"8GiB\"\n[[vf]]\nname = \"a\"\ncount = 3\nvram = \"4GiB\"\n", {"a3", "vram"}},
        {"no_table", "vf = 3\n", {":1:", "[[vf]]"}},
        {"no_toml", "[gpu\n", {"w.toml:1:"}},
    }),
    [](const auto& p) { return std::string(p.param.name); });

TEST(WorkloadFileTest, ThereMayBeAThousandSamples) {
  for (const auto& [count, fine] : {std::pair{1000, true}, std::pair{1001, false}}) {
    std::string list;
    for (int i = 0; i < count; ++i) list += "\"1ms\",";
    EXPECT_EQ(fine, ParseWorkload("[[vf]]\nname = \"a\"\nwork = { samples = [" + list + "] }\n", "w.toml").has_value());
  }
}

TEST(WorkloadFileTest, AFileThatIsNotThereIsNamed) {
  const auto w = LoadWorkload("no/such/file.toml");
  ASSERT_FALSE(w);
  EXPECT_NE(std::string::npos, w.error().context.find("no/such/file.toml"));
}

}  // namespace
}  // namespace vgpud::tools
