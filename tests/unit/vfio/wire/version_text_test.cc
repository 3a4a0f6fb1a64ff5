// SPDX-License-Identifier: Apache-2.0
#include "vfio/wire/version_text.h"

#include <gtest/gtest.h>

#include <string>

namespace vgpud {
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

TEST(VersionTextTest, RefusesAKnownKeySaidTwice) {
  EXPECT_TRUE(Refused(Capabilities(R"("max_msg_fds": 1, "max_msg_fds": 2)")));
  EXPECT_TRUE(Refused(R"({"capabilities": {}, "capabilities": {}})"));
}

TEST(VersionTextTest, RefusesTextsThatAreTooLongOrTooDeep) {
  const auto padded = [](size_t bytes) { return "{\"a\":\"" + std::string(bytes - 8, 'x') + "\"}"; };
  EXPECT_TRUE(ParseVersionText(padded(kMaxVersionText)));
  EXPECT_TRUE(Refused(padded(kMaxVersionText + 1)));
  const auto deep = [](size_t levels) {
    return "{\"a\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  EXPECT_TRUE(ParseVersionText(deep(kMaxVersionDepth)));
  EXPECT_TRUE(Refused(deep(kMaxVersionDepth + 1)));
}

}  // namespace
}  // namespace vgpud
