// SPDX-License-Identifier: Apache-2.0
#include "vfio/wire/version_text.h"

#include <gtest/gtest.h>

#include <string>

namespace vgpud::vfio {
namespace {

std::string Capabilities(const std::string& inside) { return R"({"capabilities":{)" + inside + "}}"; }
bool Refused(const std::string& text) {
  const auto parsed = ParseVersionText(text);
  return !parsed && parsed.error().code == std::errc::invalid_argument;
}

TEST(VersionTextTest, ReadsWhatQemuSays) {
  const auto said = ParseVersionText(
      R"({"capabilities": {"pgsizes": 4096, "max_msg_fds": 16, "max_dma_maps": 65535, "max_data_xfer_size": 1048576, )"
      R"("migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "write_multiple": true}})");
  ASSERT_TRUE(said) << said.error().context;
  EXPECT_EQ(16u, said->max_msg_fds);
  EXPECT_EQ(1048576u, said->max_data_xfer_size);
  EXPECT_EQ(65535u, said->max_dma_maps);
  EXPECT_EQ(4096u, said->page_sizes);
}

TEST(VersionTextTest, NothingSaidIsTheDefaultsOfTheProtocol) {
  for (const char* text : {"", "{}", R"({"capabilities":{}})"}) {
    const auto said = ParseVersionText(text);
    ASSERT_TRUE(said) << text << ": " << said.error().context;
    EXPECT_EQ(1u, said->max_msg_fds);
    EXPECT_EQ(1048576u, said->max_data_xfer_size);
    EXPECT_EQ(65535u, said->max_dma_maps);
    EXPECT_EQ(4096u, said->page_sizes);
  }
}

TEST(VersionTextTest, SkipsUnknownKeysWhateverTheyHold) {
  const auto said = ParseVersionText(
      R"({"max_msg_fds": "here it means nothing", "x": [{"capabilities": 5, "": {}}], "capabilities": {"new": null, "": 1,)"
      R"( "newer": {"max_msg_fds": -1}, "arrays": [[1.5, {"twin_socket": 3}]], "max_msg_fds": 7, "a\u0000b": 1e9}})");
  ASSERT_TRUE(said) << said.error().context;
  EXPECT_EQ(7u, said->max_msg_fds);
}

TEST(VersionTextTest, RefusesWhatIsNoJsonObject) {
  for (const char* text : {"{",
                           "}",
                           "{}}",
                           "{} x",
                           "hello",
                           "\"",
                           "[]",
                           "1",
                           "null",
                           "true",
                           "\"capabilities\"",
                           "{,}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{'a':1}",
                           R"({"capabilities":{"max_msg_fds":16})",
                           R"({"a":NaN})",
                           R"({"a":01})",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":1e999}",
                           "/* */ {}"})
    EXPECT_TRUE(Refused(text)) << text;
}

TEST(VersionTextTest, RefusesKnownKeysOfAnotherType) {
  EXPECT_TRUE(Refused(R"({"capabilities": []})"));
  EXPECT_TRUE(Refused(R"({"capabilities": 1})"));
  EXPECT_TRUE(Refused(R"({"capabilities": null})"));
  for (const char* inside :
       {R"("max_msg_fds": "16")", R"("max_msg_fds": true)", R"("max_msg_fds": [16])", R"("max_msg_fds": {})",
        R"("max_msg_fds": 16.0)", R"("max_msg_fds": null)", R"("write_multiple": 1)", R"("twin_socket": true)",
        R"("twin_socket": {"supported": 1})", R"("migration": 5)", R"("migration": {"pgsize": "4096"})"})
    EXPECT_TRUE(Refused(Capabilities(inside))) << inside;
}

TEST(VersionTextTest, RefusesNumbersOutOfRange) {
  for (const char* inside :
       {R"("max_msg_fds": -1)", R"("max_msg_fds": 4294967296)", R"("max_data_xfer_size": 0)",
        R"("max_data_xfer_size": 18446744073709551616)", R"("max_dma_maps": 0)", R"("pgsizes": 0)", R"("pgsizes": 512)",
        R"("twin_socket": {"fd_index": 16})", R"("migration": {"max_bitmap_size": 0})"})
    EXPECT_TRUE(Refused(Capabilities(inside))) << inside;
}

// Each number of the protocol, with the least and the most that it can be.
TEST(VersionTextTest, NumbersHaveTheirBounds) {
  constexpr uint64_t kExact = 9007199254740992;  // 2^53
  struct {
    const char *before, *after;
    uint64_t least, most;
    uint64_t ClientCapabilities::*kept;
  } const numbers[] = {
      {R"("max_msg_fds":)", "", 0, 0xffff'ffff, &ClientCapabilities::max_msg_fds},
      {R"("max_data_xfer_size":)", "", 1, 0xffff'ffff, &ClientCapabilities::max_data_xfer_size},
      {R"("max_dma_maps":)", "", 1, 0xffff'ffff, &ClientCapabilities::max_dma_maps},
      {R"("pgsizes":)", "", 4096, kExact, &ClientCapabilities::page_sizes},
      {R"("twin_socket":{"fd_index":)", "}", 0, 15, nullptr},
      {R"("migration":{"pgsize":)", "}", 1, kExact, nullptr},
      {R"("migration":{"max_bitmap_size":)", "}", 1, kExact, nullptr},
  };
  for (const auto& n : numbers) {
    const auto text = [&](uint64_t value) { return Capabilities(n.before + std::to_string(value) + n.after); };
    for (const uint64_t value : {n.least, n.most}) {
      const auto said = ParseVersionText(text(value));
      ASSERT_TRUE(said) << text(value);
      if (n.kept != nullptr) {
        EXPECT_EQ(value, (*said).*n.kept) << text(value);
      }
    }
    if (n.least != 0) {
      EXPECT_TRUE(Refused(text(n.least - 1))) << text(n.least - 1);
    }
    EXPECT_TRUE(Refused(text(n.most + 1))) << text(n.most + 1);
  }
}

TEST(VersionTextTest, EachIsRefusedForWhatIsWrongWithIt) {
  const std::pair<std::string, std::string> texts[] = {
      {Capabilities(R"("max_msg_fds":"x")"), "VERSION: the text has a max_msg_fds that is not a whole number"},
      {Capabilities(R"("write_multiple":1)"), "VERSION: the text has a write_multiple that is not true or false"},
      {R"({"capabilities":1})", "VERSION: the text has a capabilities that is not an object"},
      {Capabilities(R"("pgsizes":1)"), "VERSION: the text has pgsizes 1, 4096 to 9007199254740992 are possible"},
      {Capabilities(R"("max_msg_fds":1,"max_msg_fds":1)"), "VERSION: the text has max_msg_fds twice"},
      {"[]", "VERSION: the text is no JSON object"},
      {"{]", "VERSION: the text is no JSON at byte 2"},
  };
  for (const auto& [text, why] : texts) {
    const auto said = ParseVersionText(text);
    ASSERT_FALSE(said) << text;
    EXPECT_EQ(why, said.error().context);
  }
}

TEST(VersionTextTest, RefusesAKnownKeySaidTwice) {
  for (const char* name : {"capabilities", "max_msg_fds", "max_data_xfer_size", "max_dma_maps", "pgsizes",
                           "write_multiple", "twin_socket", "migration"}) {
    const bool object = name[0] == 'c' || name[0] == 't' || name == std::string("migration");
    const std::string value = object ? "{}" : name[0] == 'w' ? "true" : "4096";
    std::string once = "\"";
    once.append(name).append("\":").append(value);
    const auto text = [&](const std::string& inside) {
      return name[0] == 'c' ? "{" + inside + "}" : Capabilities(inside);
    };
    EXPECT_TRUE(ParseVersionText(text(once))) << text(once);
    EXPECT_TRUE(Refused(text(once + ',' + once))) << text(once);
  }
  EXPECT_TRUE(Refused(Capabilities(R"("migration":{"pgsize":4096,"pgsize":4096})")));
  EXPECT_TRUE(Refused(Capabilities(R"("twin_socket":{"supported":true,"supported":true})")));
  EXPECT_TRUE(Refused(Capabilities(R"("max_msg_fds": 1, "max_msg_fds": 2)")));
  EXPECT_TRUE(Refused(R"({"capabilities": {}, "capabilities": {}})"));
}

TEST(VersionTextTest, RefusesTextsThatAreTooLongOrTooDeep) {
  const auto padded = [](size_t bytes) { return "{\"a\":\"" + std::string(bytes - 8, 'x') + "\"}"; };
  EXPECT_TRUE(ParseVersionText(padded(4096)));
  EXPECT_TRUE(Refused(padded(4097)));
  const auto deep = [](size_t levels) {
    return "{\"a\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  EXPECT_TRUE(ParseVersionText(deep(8)));
  EXPECT_TRUE(Refused(deep(9)));
  EXPECT_TRUE(ParseVersionText(R"({"a":[[],[]]})")) << "beside each other";
}

}  // namespace
}  // namespace vgpud::vfio
