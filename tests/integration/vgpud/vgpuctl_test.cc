// SPDX-License-Identifier: Apache-2.0
// vgpuctl with several VFs at once, and with VFs that are in use.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/fd.h"
#include "tests/integration/vgpud/vgpud_bed.h"

namespace vgpud::daemon {
namespace {

using Json = nlohmann::json;
using Names = std::set<std::string>;

class SeveralVfs : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) ASSERT_EQ(0, bed_.Ctl({"create", name, "--vram", "16MiB"}).status);
  }
  std::string Do(const std::vector<std::string>& words, int status = 0) const {
    const Finished done = bed_.Ctl(words);
    EXPECT_EQ(status, done.status) << testing::PrintToString(words) << "\n" << done.out << done.err;
    return done.out + done.err;
  }
  Json DoJson(std::vector<std::string> words, int status = 0) const {
    words.insert(words.end(), {"-o", "json"});
    const Finished done = bed_.Ctl(words);
    EXPECT_EQ(status, done.status) << done.err;
    return Json::parse(done.out, nullptr, false);
  }
  Json Vfs() const { return DoJson({"list"})["vfs"]; }
  // Of all VFs that have `value` in `field`; without them of all.
  Names NamesOf(const std::string& field = "", const Json& value = {}) const {
    Names names;
    for (const Json& vf : Vfs())
      if (field.empty() || vf[field] == value) names.insert(vf["name"]);
    return names;
  }
  static Names NamesIn(const Json& answer) {
    Names names;
    for (const Json& vf : answer["vfs"]) names.insert(vf["name"]);
    return names;
  }

  const VgpudBed bed_;
};

TEST_F(SeveralVfs, ChangeTogetherOrNotAtAll) {
  EXPECT_EQ((Names{"a", "b"}), [&] {
    Do({"pause", "a", "b"});
    return NamesOf("paused", true);
  }());
  const Json answer = DoJson({"set", "--all", "--weight", "300"});
  EXPECT_EQ(3, std::count_if(answer["changes"].begin(), answer["changes"].end(),
                             [](const Json& change) { return change["field"] == "weight"; }))
      << answer;
  EXPECT_EQ((Names{"a", "b", "c"}), NamesOf("weight", 300));
  EXPECT_NE(std::string::npos, Do({"set", "a", "zz", "--weight", "5"}, 4).find("there is no vf \"zz\""));
  EXPECT_EQ((Names{"a", "b", "c"}), NamesOf("weight", 300)) << "a has changed although zz is not there";
  Do({"set", "a", "b", "--weight", "7", "--dry-run"});
  EXPECT_EQ(Names{}, NamesOf("weight", 7));
  Do({"resume", "--all"});
  EXPECT_EQ(Names{}, NamesOf("paused", true));
}

TEST_F(SeveralVfs, AreShownAndResetOneByOne) {
  EXPECT_EQ((Names{"a", "c"}), NamesIn(DoJson({"show", "a", "c"})));
  EXPECT_EQ((Names{"a", "b", "c"}), NamesIn(DoJson({"show", "--all"})));
  EXPECT_EQ("a", DoJson({"show", "a"})["name"]) << "one that was named is no list";
  EXPECT_EQ((Names{"a"}), NamesIn(DoJson({"show", "zz", "a"}, 4))) << "what is there is shown all the same";
  EXPECT_EQ("a reset, state ready\nb reset, state ready\n", Do({"reset", "a", "b"}));
}

TEST_F(SeveralVfs, AreDestroyedAsFarAsTheyAreThere) {
  EXPECT_EQ("a destroyed\nvgpuctl: there is no vf \"zz\" (see: vgpuctl list)\n", Do({"destroy", "a", "zz"}, 4));
  Do({"destroy", "a"}, 4);
  EXPECT_EQ("", Do({"destroy", "a", "--if-exists"}));
  EXPECT_EQ(Names{}, NamesIn(DoJson({"destroy", "a", "--if-exists"})));
  EXPECT_EQ((Names{"b"}), NamesIn(DoJson({"destroy", "a", "b", "--if-exists"})));
  EXPECT_EQ("c destroyed\n", Do({"destroy", "--all"}));
  EXPECT_EQ("", Do({"destroy", "--all"})) << "there is none";
  EXPECT_EQ("there is no VF: nothing changes\n", Do({"pause", "--all"}));
}

TEST_F(SeveralVfs, AreNamedOnceOrAllAtOnce) {
  const struct {
    std::vector<std::string> words;
    int status;
    const char* says;
  } kWrong[] = {
      {{"destroy"}, 2, "destroy needs the name of a VF, several names, or --all"},
      {{"pause"}, 2, "pause needs the name"},
      {{"show", "a", "--all"}, 2, "give names of VFs or --all, not both"},
      {{"reset", "a", "b", "a"}, 2, "a is given twice"},
      {{"set", "a", "b", "--weight", "1", "--if-revision", "5"}, 2, "--if-revision is the revision of one VF"},
      {{"destroy", "--all", "--if-revision", "5"}, 2, "--if-revision is the revision of one VF"},
      {{"show", "a/../b"}, 4, "there is no vf \"a/../b\""},
      {{"destroy", "a?if_unused=0"}, 4, "there is no vf"},
      {{"show", ""}, 4, "there is no vf \"\""}};
  const Json before = Vfs();
  for (const auto& wrong : kWrong)
    EXPECT_NE(std::string::npos, Do(wrong.words, wrong.status).find(wrong.says)) << wrong.says;
  EXPECT_EQ(before, Vfs());
}

TEST_F(SeveralVfs, CreateIsContentWithOneThatIsThere) {
  Do({"create", "a", "--weight", "5"}, 5);
  EXPECT_EQ("a is there already: nothing was done\n", Do({"create", "a", "--weight", "5", "--if-missing"}));
  EXPECT_EQ(100, DoJson({"create", "a", "--weight", "5", "--if-missing"})["weight"]) << "it stays as it is";
  EXPECT_EQ(5, DoJson({"create", "d", "--vram", "16MiB", "--weight", "5", "--if-missing"})["weight"]);
  const std::string said = Do({"create", "e", "--guarantee", "50%", "--if-missing"}, 5);
  EXPECT_NE(std::string::npos, said.find("policy strict has no guarantee")) << "another reason to refuse it: " << said;
}

TEST_F(SeveralVfs, OneInUseIsDestroyedByForceOnly) {
  const UniqueFd channel = bed_.OpenChannel("a");
  ASSERT_TRUE(Eventually([&] { return NamesOf("executors", 1) == Names{"a"}; }));
  const std::string said = Do({"destroy", "a"}, 5);
  EXPECT_NE(std::string::npos, said.find("vf \"a\" is in use: 1 program runs on it; ")) << said;
  EXPECT_NE(std::string::npos, said.find("vgpuctl destroy a --force")) << said;
  EXPECT_NE(std::string::npos, Do({"destroy", "--all"}, 5).find("c destroyed")) << "the others are ended";
  EXPECT_EQ(Names{"a"}, NamesOf());
  EXPECT_EQ("a destroyed\n", Do({"destroy", "a", "--force"}));
}

TEST_F(SeveralVfs, OneOfAVmIsInUseAlsoWithoutPrograms) {
  const std::string socket = DoJson({"show", "a"})["vfio_user_socket"];
  auto vm = ConnectUnix(socket, SOCK_STREAM);
  ASSERT_TRUE(vm);
  ASSERT_TRUE(Eventually([&] { return NamesOf("client_connected", true) == Names{"a"}; }));
  EXPECT_NE(std::string::npos, Do({"destroy", "a"}, 5).find("vf \"a\" is in use: a VM has it; "));
  *vm = UniqueFd();
  ASSERT_TRUE(Eventually([&] { return NamesOf("client_connected", true).empty(); }));
  EXPECT_EQ("a destroyed\n", Do({"destroy", "a"}));
}

TEST_F(SeveralVfs, ValuesMayBeWrittenAsPeopleWriteThem) {
  for (const auto& [text, value] : {std::pair("yes", 1), std::pair("off", 0), std::pair("1", 1)})
    EXPECT_EQ(value, [&] {
      Do({"set", "a", "--wake-first", text});
      return DoJson({"show", "a"})["wake_first"];
    }()) << text;
  EXPECT_EQ(DoJson({"report"}), DoJson({"report", "--day", "today"}));
  const Json yesterday = DoJson({"report", "--day", "yesterday"});
  EXPECT_EQ(yesterday["from"], yesterday["to"]);
  EXPECT_LT(yesterday["from"].get<std::string>(), DoJson({"report"})["from"].get<std::string>());
}

TEST_F(SeveralVfs, ErrorsAreObjectsForPrograms) {
  const Finished done = bed_.Ctl({"set", "a", "--weight", "5", "--if-revision", "1", "-o", "json"});
  EXPECT_EQ(5, done.status);
  EXPECT_EQ("", done.out);
  const Json error = Json::parse(done.err, nullptr, false);
  EXPECT_EQ(5, error.value("exit_code", 0)) << done.err;
  EXPECT_EQ("if_revision", error.value("field", "")) << done.err;
  EXPECT_EQ("vgpud/v1", error.value("apiVersion", ""));
  EXPECT_NE(std::string::npos, error.value("error", "").find("has been changed meanwhile"));
  for (const char* output : {"-ojson", "--output=json"}) {
    const Json wrong = Json::parse(bed_.Ctl({output, "lst"}).err, nullptr, false);
    EXPECT_EQ(2, wrong.value("exit_code", 0)) << "a line that can't be parsed: " << output;
  }
}

TEST(Vgpuctl, AVfThatFindsNoRoomInTimeIsNotWaitedForAnyMore) {
  const VgpudBed bed({"--soft-gpu-vram", "64MiB"});
  EXPECT_EQ(0, bed.Ctl({"create", "a", "--vram", "64MiB"}).status);
  const Finished late = bed.Ctl({"create", "b", "--vram", "64MiB", "--queue", "--timeout", "100ms"});
  EXPECT_EQ(6, late.status);
  EXPECT_NE(std::string::npos, late.err.find("b was not made: no GPU had room for it within --timeout")) << late.err;
  EXPECT_EQ(0, bed.Ctl({"destroy", "a"}).status);
  EXPECT_EQ(4, bed.Ctl({"show", "b"}).status) << "it has left the queue";
}

}  // namespace
}  // namespace vgpud::daemon
