// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/cgroup_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

class CgroupFileTest : public testing::Test {
 protected:
  std::string Put(const std::string& text) {
    const std::string path = directory_ / "file";
    std::ofstream(path) << text;
    return path;
  }
  const ScratchDir scratch_;
  const fs::path directory_ = scratch_.path();
};

TEST_F(CgroupFileTest, ANumberStandsAloneOrBehindItsKey) {
  EXPECT_EQ(123u, ReadCgroupNumber(Put("123\n")));
  EXPECT_EQ(std::nullopt, ReadCgroupNumber(Put("max\n")));
  EXPECT_EQ(std::nullopt, ReadCgroupNumber(Put("")));
  EXPECT_EQ(std::nullopt, ReadCgroupNumber(directory_ / "none"));
  const std::string stat = Put("usage_usec 1500\nuser_usec 7\nnr 9");
  EXPECT_EQ(1500u, ReadCgroupNumber(stat, "usage_usec"));
  EXPECT_EQ(7u, ReadCgroupNumber(stat, "user_usec"));
  EXPECT_EQ(9u, ReadCgroupNumber(stat, "nr"));
  for (const char* none : {"usage", "usec", "system_usec", "er_usec", "1500"})
    EXPECT_EQ(std::nullopt, ReadCgroupNumber(stat, none)) << none;
  EXPECT_EQ(std::nullopt, ReadCgroupNumber(Put("usage_usec max\n"), "usage_usec"));
}

TEST_F(CgroupFileTest, TextIsReadAndWrittenAsItIs) {
  const std::string path = Put("old");
  EXPECT_EQ("old", ReadCgroupFile(path));
  ASSERT_TRUE(WriteCgroupFile(path, "new"));
  EXPECT_EQ("new", ReadCgroupFile(path));
  EXPECT_EQ("", ReadCgroupFile(directory_ / "none"));
  const auto missing = WriteCgroupFile(directory_ / "none", "5");
  ASSERT_FALSE(missing);
  EXPECT_NE(std::string::npos, missing.error().context.find("cannot open")) << missing.error().context;
  EXPECT_FALSE(fs::exists(directory_ / "none")) << "files of groups are the kernel's to make";
  fs::create_symlink(path, directory_ / "link");
  EXPECT_FALSE(WriteCgroupFile(directory_ / "link", "5"));
  EXPECT_EQ("", ReadCgroupFile(directory_ / "link"));
  const auto full = WriteCgroupFile("/dev/full", "5");
  ASSERT_FALSE(full);
  EXPECT_NE(std::string::npos, full.error().context.find("cannot write \"5\" to /dev/full")) << full.error().context;
}

}  // namespace
}  // namespace vgpud::daemon
