// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "tools/vgpuctl/chunked.h"
#include "tools/vgpuctl/http_client.h"
#include "tools/vgpuctl/knobs.h"
#include "tools/vgpuctl/state_file.h"
#include "tools/vgpuctl/table.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {
namespace {

TEST(UnitsTest, BytesNeedAUnit) {
  EXPECT_EQ(uint64_t{1} << 30, ParseBytes("1GiB"));
  EXPECT_EQ(uint64_t{3} << 19, ParseBytes("1.5MiB"));
  EXPECT_EQ(4096u, ParseBytes("4096B"));
  for (const char* also : {"1g", "1G", "1gi", "1Gi", "1gib", "1GIB"})
    EXPECT_EQ(uint64_t{1} << 30, ParseBytes(also)) << also;
  EXPECT_EQ(uint64_t{3} << 19, ParseBytes("1.5m"));
  for (const char* bad : {"", "1", "g", "1gx", "1e3g", "GiB", "1GB", "1 GiB", "-1GiB", "1e3B", "0.3B", "99999999TiB",
                          "1GiBx", "nanB", "infB"})
    EXPECT_FALSE(ParseBytes(bad)) << bad;
}

TEST(UnitsTest, TimesNeedAUnit) {
  EXPECT_EQ(2'000u, ParseMicroseconds("2ms"));
  EXPECT_EQ(500u, ParseMicroseconds("500us"));
  EXPECT_EQ(1'500u, ParseMicroseconds("1.5ms"));
  EXPECT_EQ(1'000'000u, ParseMicroseconds("1s"));
  for (const char* minutes : {"2min", "2m", "120s"}) EXPECT_EQ(120'000'000u, ParseMicroseconds(minutes)) << minutes;
  EXPECT_EQ(3'600'000'000u, ParseMicroseconds("1h"));
  for (const char* bad : {"2", "ms", "2d", "0.5us", "-2ms", "2 ms"}) EXPECT_FALSE(ParseMicroseconds(bad)) << bad;
}

TEST(UnitsTest, PrintedAsPeopleSayThem) {
  EXPECT_EQ("1GiB", FormatBytes(1u << 30));
  EXPECT_EQ("1.5GiB", FormatBytes(uint64_t{3} << 29));
  EXPECT_EQ("0B", FormatBytes(0));
  EXPECT_EQ("2ms", FormatMicroseconds(2'000));
  EXPECT_EQ("1.5ms", FormatMicroseconds(1'500));
  EXPECT_EQ("750us", FormatMicroseconds(750));
  EXPECT_EQ("12.3us", FormatNanoseconds(12'345));
  EXPECT_EQ("4.56s", FormatNanoseconds(4'560'000'000));
}

TEST(HttpReplyTest, StatusAndBody) {
  const auto reply = ParseHttpReply("HTTP/1.1 201 Created\r\nX: y\r\ncontent-LENGTH: 2\r\n\r\n{}");
  ASSERT_TRUE(reply);
  EXPECT_EQ(201, reply->status);
  EXPECT_EQ("{}", reply->body);
}

TEST(HttpReplyTest, WhatIsNoReplyIsAnError) {
  for (const char* bad : {"", "garbage", "HTTP/1.1", "HTTP/1.1 2x0 OK\r\n\r\n", "SSH-2.0\r\n\r\n",
                          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}"})
    EXPECT_FALSE(ParseHttpReply(bad)) << bad;
}

TEST(HttpReplyTest, PiecesAreJoined) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto reply = ParseHttpReply(head + "5\r\nhello\r\n1A;x=y\r\n, abcdefghijklmnopqrstuvwx\r\n0\r\n\r\n");
  ASSERT_TRUE(reply) << reply.error().context;
  EXPECT_EQ("hello, abcdefghijklmnopqrstuvwx", reply->body);
  for (const char* bad :
       {"", "5\r\nhell", "5\r\nhello\r\n", "5\r\nhelloXX0\r\n\r\n", "zz\r\n\r\n", "ffffffffffffffff\r\nx\r\n"})
    EXPECT_FALSE(ParseHttpReply(head + bad)) << bad;
}

TEST(HttpReplyTest, ErrorIsTheTextOfAnErrorObjectAlone) {
  EXPECT_EQ("no VF x", (HttpReply{404, R"({"error": "no VF x", "field": "name"})"}).Error());
  for (const char* body : {"", "no JSON", "[]", "\"error\"", "null", "{}", R"({"error": 5})", R"(["error"])"})
    EXPECT_EQ("", (HttpReply{500, body}).Error()) << body;
}

TEST(HttpReplyTest, OkIsAnyStatusOfSuccess) {
  for (const int status : {200, 201, 204, 299}) EXPECT_TRUE((HttpReply{status, {}}).ok()) << status;
  for (const int status : {0, 100, 199, 300, 404, 500}) EXPECT_FALSE((HttpReply{status, {}}).ok()) << status;
}

const control::KnobInfo& Knob(const char* field) { return *control::FindKnob(field); }

TEST(TypedKnobTest, ByTheUnitOfTheKnob) {
  EXPECT_EQ(CtlJson(300), *ParseKnob(Knob("weight"), "300"));
  for (const char* on : {"yes", "on", "true", "1"}) EXPECT_EQ(CtlJson(1), *ParseKnob(Knob("wake_first"), on)) << on;
  for (const char* off : {"no", "off", "false", "0"}) EXPECT_EQ(CtlJson(0), *ParseKnob(Knob("wake_first"), off)) << off;
  EXPECT_EQ(CtlJson(1500), *ParseKnob(Knob("slice_us"), "1.5ms"));
  EXPECT_EQ(CtlJson(0.25), *ParseKnob(Knob("guarantee"), "25%"));
  EXPECT_EQ(CtlJson(0.25), *ParseKnob(Knob("guarantee"), "0.25"));
  EXPECT_EQ(CtlJson(10), *ParseKnob(Knob("floor_percent"), "10%"));
  for (const char* word : {"auto", "none", "off", "default"})
    EXPECT_EQ(CtlJson(nullptr), *ParseKnob(Knob("limit"), word)) << word;
  const auto group = ParseGroupKnob(Knob("group_weight"), "3=200");
  ASSERT_TRUE(group);
  EXPECT_EQ("3", group->group);
  EXPECT_EQ(CtlJson(200), group->value);
}

TEST(TypedKnobTest, WhatIsNoValueIsRefused) {
  const std::pair<const char*, const char*> bad[] = {
      {"weight", "many"},   {"weight", ""},        {"weight", "5%"},         {"slice_us", "5"},
      {"guarantee", "x"},   {"guarantee", "0.5 "}, {"guarantee", "%"},       {"guarantee", "1/4"},
      {"guarantee", "nan"}, {"limit", "50 %"},     {"floor_percent", "5ms"}, {"wake_first", "maybe"}};
  for (const auto& [knob, text] : bad) EXPECT_FALSE(ParseKnob(Knob(knob), text)) << knob << " " << text;
  for (const char* text : {"3", "=200", "3=", "3=x"}) EXPECT_FALSE(ParseGroupKnob(Knob("group_weight"), text)) << text;
}

TEST(TypedKnobTest, WhatIsOutOfRangeIsSaidWithTheRangeAsItIsTyped) {
  const struct {
    const char* knob;
    const char* text;
    const char* range;
  } kWrong[] = {{"weight", "0", "1 to 10000"},
                {"weight", "-1", "1 to 10000"},
                {"slice_us", "2s", "100us to 1s"},
                {"slice_us", "99us", "100us to 1s"},
                {"guarantee", "0.01%", "0 or 0.1% to 100%"},
                {"limit", "101%", "0.1% to 100%"},
                {"floor_percent", "26%", "1% to 25%"},
                {"max_wait_us", "11s", "0 or 1ms to 10s"}};
  for (const auto& wrong : kWrong) {
    const auto value = ParseKnob(Knob(wrong.knob), wrong.text);
    ASSERT_FALSE(value) << wrong.knob;
    EXPECT_EQ(fmt::format("{} is out of range: allowed is {}", wrong.text, wrong.range), value.error().context);
  }
  for (const char* fits : {"0", "0%", "0.1%", "100%"}) EXPECT_TRUE(ParseKnob(Knob("guarantee"), fits)) << fits;
}

TEST(TypedKnobTest, PartsAreReadAsPercent) {
  EXPECT_EQ("25%", FormatPart(0.25));
  EXPECT_EQ("33.33%", FormatPart(1.0 / 3));
  EXPECT_EQ("0%", FormatPart(0));
}

TEST(TypedKnobTest, APartWithoutPercentIsSuggestedWithIt) {
  const auto part = ParseKnob(Knob("limit"), "50");
  ASSERT_FALSE(part);
  EXPECT_EQ("50 is more than the whole GPU: did you mean 50%?", part.error().context);
  EXPECT_EQ(CtlJson(1.0), *ParseKnob(Knob("limit"), "1"));
}

using Words = std::vector<std::string>;

TEST(NearestTest, SlipsOfTheFinger) {
  const Words words{"list", "lint", "show", "set-gpu", "gpus", "weight"};
  EXPECT_EQ(Words{"list"}, control::Nearest("lst", words));
  EXPECT_EQ(Words{"weight"}, control::Nearest("weigth", words)) << "swapped";
  EXPECT_EQ(Words{"gpus"}, control::Nearest("GPUS", words)) << "capitals";
  EXPECT_EQ(Words{"set-gpu"}, control::Nearest("set", words)) << "its beginning";
  EXPECT_EQ((Words{"list", "lint"}), control::Nearest("lit", words)) << "both are as near";
  for (const char* far : {"", "s", "xyz", "rm", "destroy"}) EXPECT_EQ(Words{}, control::Nearest(far, words)) << far;
  EXPECT_EQ(Words{}, control::Nearest(std::string(1'000'000, 'l'), words)) << "costs nothing";
}

TEST(NearestTest, FourAreAChoiceAndNotASuggestion) {
  const Words sizes{"1/1", "1/2", "1/4", "1/8"};
  EXPECT_EQ("there are 1/1, 1/2, 1/4, 1/8", control::DidYouMean("1/3", sizes));
  EXPECT_EQ("did you mean a1, a2 or a3?", control::DidYouMean("ax", {"a1", "a2", "a3", "b"}));
  EXPECT_EQ("did you mean policy?", control::DidYouMean("polcy", {"policy", "idle"}));
}

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table{{"A", "LONG"}};
  table.Row({"wide one", "1"});
  EXPECT_EQ("A         LONG\nwide one  1\n", table.Text());
}

TEST(VfInputTest, IsANameAndKnobsWithTheirUnits) {
  const auto input = ParseVfInput("guest-a:weight=300,limit=50%,slice=2ms,burst=none,vram=2GiB");
  ASSERT_TRUE(input) << input.error().context;
  EXPECT_EQ("guest-a", input->name);
  ASSERT_EQ(5u, input->fields.size());
  EXPECT_EQ("weight", input->fields[0].first);
  EXPECT_EQ(CtlJson(300), input->fields[0].second);
  EXPECT_EQ(CtlJson(0.5), input->fields[1].second);
  EXPECT_EQ("slice_us", input->fields[2].first);
  EXPECT_EQ(CtlJson(2000), input->fields[2].second);
  EXPECT_EQ(CtlJson(nullptr), input->fields[3].second);
  EXPECT_EQ("vram_bytes", input->fields[4].first);
  EXPECT_EQ(CtlJson(uint64_t{2} << 30), input->fields[4].second);
}

TEST(VfInputTest, WhatIsWrongIsNamed) {
  for (const auto& [text, said] : std::vector<std::pair<const char*, const char*>>{
           {"", "NAME:OPTION=VALUE"},
           {"guest-a", "NAME:OPTION=VALUE"},
           {":weight=1", "NAME:OPTION=VALUE"},
           {"a:", "NAME:OPTION=VALUE"},
           {"a:weight", "NAME:OPTION=VALUE"},
           {"a:weight=1,", "NAME:OPTION=VALUE"},
           {"a:colour=1", "no option \"colour\""},
           {"a:base-slice=1ms", "no option \"base-slice\""},
           {"a:weight=1,weight=2", "weight is given twice"},
           {"a:slice=2", "a: slice"},
           {"a:vram=2", "a: vram"},
           {"a:vram=2GiB,vram=1GiB", "vram is given twice"},
       }) {
    const auto input = ParseVfInput(text);
    ASSERT_FALSE(input) << text;
    EXPECT_NE(std::string::npos, input.error().context.find(said)) << input.error().context;
  }
}

class ChunkReaderTest : public testing::Test {
 protected:
  std::string body_;
  ChunkReader reader_{[this](std::string_view piece) {
    body_ += piece;
    return Result<void>{};
  }};
};

TEST_F(ChunkReaderTest, TakesChunksInPiecesOfAnyLength) {
  for (const char c : std::string("5\r\nhello\r\nb;x=y\r\n, chunks\r\n!\r\n0\r\n\r\n")) {
    EXPECT_FALSE(reader_.done() && body_.size() < 16);
    ASSERT_TRUE(reader_.Feed({&c, 1}));
  }
  EXPECT_TRUE(reader_.done());
  EXPECT_EQ("hello, chunks\r\n!", body_);
}

TEST_F(ChunkReaderTest, WhatIsNotAChunkIsSaid) {
  for (const char* bad : {"x\r\n", "\r\n", "5\r\nhelloX", "99999999999999999\r\n"}) {
    ChunkReader reader{[](std::string_view) { return Result<void>{}; }};
    const auto fed = reader.Feed(bad);
    ASSERT_FALSE(fed) << bad;
    EXPECT_EQ(std::errc::protocol_error, fed.error().code);
  }
  EXPECT_FALSE(reader_.Feed(std::string(1000, '1'))) << "a length without end";
  EXPECT_FALSE(JoinChunks("5\r\nhel")) << "cut off";
}

TEST_F(ChunkReaderTest, AnErrorOfTheSinkEndsIt) {
  ChunkReader reader{[](std::string_view) { return Result<void>(Fail(std::errc::no_space_on_device, "full")); }};
  const auto fed = reader.Feed("5\r\nhello\r\n");
  ASSERT_FALSE(fed);
  EXPECT_EQ(std::errc::no_space_on_device, fed.error().code);
}

// JSON has none of these: they would be sent as null, which stands for the default.
TEST(StateFile, WhatIsNoNumberIsRefusedWithItsPlace) {
  for (const char* text : {"nan", "-nan", "inf", "-inf"}) {
    const auto vf = ParseState(fmt::format("[vf.a]\nweight = {}\n", text), "file");
    ASSERT_FALSE(vf) << text;
    EXPECT_EQ("file:2:1: weight must be a number, or text in quotes like \"default\"", vf.error().context);
    EXPECT_FALSE(ParseState(fmt::format("[gpu.one]\nbase_slice_us = {}\n", text), "file")) << text;
  }
  EXPECT_TRUE(ParseState("[vf.a]\nguarantee = 0.25\n", "file"));
}

}  // namespace
}  // namespace vgpud::tools
