// SPDX-License-Identifier: Apache-2.0
// The memory of VFs that are there: what may be asked for, what is promised, and what is left of a change that may not
// be. Programs that use it: tests/restart/resizes.py.
#include <fstream>

#include "tests/integration/vgpud/policy_bed.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class Resize : public testing::Test {
 protected:
  Json Vf(const std::string& name) const { return bed_.Do("GET", "/v1/vfs/" + name); }
  void Create(const std::string& name, uint64_t vram) {
    bed_.Do("POST", "/v1/vfs", {{"name", name}, {"vram_bytes", vram * kMiB}, {"host_memory_bytes", 64 * kMiB}});
  }
  Json Kept(const std::string& name) const {
    std::ifstream file(bed_.bed().runtime_dir() + "/state/vfs/" + name + ".json");
    return Json::parse(file, nullptr, false);
  }
  uint64_t Promised() const { return bed_.Do("GET", "/v1/gpu")["vram_promised_bytes"]; }

  PolicyBed bed_{{"--soft-gpu-vram", "256MiB"}};
};

TEST_F(Resize, IsInForceAndOnTheDisk) {
  Create("a", 64);
  const Json before = Vf("a");
  const Json dry = bed_.Do("PATCH", "/v1/vfs/a?dry_run=1", {{"vram_bytes", 96 * kMiB}});
  EXPECT_EQ(true, dry["dry_run"]);
  EXPECT_EQ(before["vram_bytes"], Vf("a")["vram_bytes"]);
  for (const auto& [vram, host] : {std::pair<uint64_t, uint64_t>{256, 16}, {7, 128}, {96, 96}}) {
    const Json changed = bed_.Do("PATCH", "/v1/vfs/a",
                                 {{"vram_bytes", vram * kMiB}, {"host_memory_bytes", host * kMiB}, {"weight", vram}});
    EXPECT_EQ(vram * kMiB, changed["vf"]["vram_bytes"]);
    EXPECT_EQ(vram * kMiB, Kept("a")["vram_bytes"]);
    EXPECT_EQ(host * kMiB, Kept("a")["host_memory_bytes"]);
    EXPECT_EQ(vram * kMiB, Promised());
    EXPECT_EQ(vram, Vf("a")["weight"]);
  }
  EXPECT_NE(before["revision"], Vf("a")["revision"]);
  const Finished typed = bed_.bed().Ctl({"set", "a", "--vram", "128MiB", "--host-memory", "64MiB"});
  EXPECT_EQ(0, typed.status) << typed.err;
  EXPECT_NE(std::string::npos, typed.out.find("a vram 96MiB -> 128MiB, effective at round ")) << typed.out;
  EXPECT_EQ("a: nothing changes\n", bed_.bed().Ctl({"set", "a", "--vram", "128MiB"}).out);
}

TEST_F(Resize, NoMoreIsPromisedThanTheGpuHas) {
  Create("a", 64);
  Create("b", 128);
  const auto refused = [&](const char* path, const Json& body) {
    const Reply reply = bed_.Ask("PATCH", path, body);
    EXPECT_EQ(409, reply.status) << reply.json;
    EXPECT_EQ("vram_bytes", reply.json["field"]) << reply.json;
    EXPECT_EQ(192 * kMiB, Promised());
    return reply.json.value("error", "");
  };
  EXPECT_NE(std::string::npos,
            refused("/v1/vfs/a", {{"vram_bytes", 129 * kMiB}, {"weight", 300}}).find("64MiB are free"));
  EXPECT_EQ(100, Vf("a")["weight"]) << "all of it or nothing";
  const auto both = [](uint64_t a, uint64_t b) {
    return Json{{"vfs", {{"a", {{"vram_bytes", a * kMiB}}}, {"b", {{"vram_bytes", b * kMiB}}}}}};
  };
  refused("/v1/settings", both(128, 129));
  // What one gives up another has.
  bed_.Do("PATCH", "/v1/settings", both(192, 64));
  bed_.Do("PATCH", "/v1/settings", both(64, 192));
  EXPECT_EQ(256 * kMiB, Promised());
  EXPECT_EQ(409, bed_.Ask("POST", "/v1/vfs", {{"name", "c"}, {"vram_bytes", kMiB}}).status);
  bed_.Do("PATCH", "/v1/vfs/b", {{"vram_bytes", 191 * kMiB}});
  Create("c", 1);
}

TEST_F(Resize, WrongAmountsAreNamed) {
  Create("a", 64);
  const std::pair<const char*, Json> kWrong[] = {{"vram_bytes", 0},
                                                 {"vram_bytes", kMiB - 1},
                                                 {"vram_bytes", (uint64_t{1} << 40) + 1},
                                                 {"vram_bytes", UINT64_MAX},
                                                 {"vram_bytes", -1},
                                                 {"vram_bytes", "1GiB"},
                                                 {"vram_bytes", 1.5},
                                                 {"vram_bytes", nullptr},
                                                 {"vram_bytes", Json::array()},
                                                 {"host_memory_bytes", 0},
                                                 {"host_memory_bytes", kMiB - 1},
                                                 {"host_memory_bytes", UINT64_MAX}};
  for (const auto& [field, value] : kWrong) {
    const Reply reply = bed_.Ask("PATCH", "/v1/vfs/a", {{field, value}});
    EXPECT_EQ(400, reply.status) << value << reply.json;
    EXPECT_EQ(field, reply.json["field"]) << value;
  }
  EXPECT_EQ(64 * kMiB, Vf("a")["vram_bytes"]);
  EXPECT_EQ(2, bed_.bed().Ctl({"set", "a", "--vram", "1"}).status);
}

// As many as come: one at a time each is done or told to try again, and the last answer holds.
TEST_F(Resize, ChangesAtTheSameTimeAreDoneOneByOneOrNotAtAll) {
  Create("a", 64);
  std::vector<std::thread> clients;
  for (uint64_t client = 0; client < 4; ++client)
    clients.emplace_back([&, client] {
      for (uint64_t n = 1; n <= 20; ++n) {
        const Reply reply = bed_.Ask("PATCH", "/v1/vfs/a", {{"vram_bytes", (16 * client + n) * kMiB}});
        const bool busy =
            reply.status == 409 && reply.json["error"].get<std::string>().find("try again") != std::string::npos;
        EXPECT_TRUE(reply.status == 200 || busy) << reply.json;
      }
    });
  for (std::thread& client : clients) client.join();
  bed_.Do("PATCH", "/v1/vfs/a", {{"vram_bytes", 200 * kMiB}});
  EXPECT_EQ(200 * kMiB, Promised());
  EXPECT_EQ(200 * kMiB, Kept("a")["vram_bytes"]);
}

// The VF goes while its memory changes: the answer says so, and nothing stays promised.
TEST_F(Resize, ADestroyInBetweenEndsIt) {
  for (int round = 0; round < 10; ++round) {
    Create("a", 64);
    std::thread changer{[&] {
      for (uint64_t n = 0; n < 10; ++n) {
        const Reply reply = bed_.Ask("PATCH", "/v1/vfs/a", {{"vram_bytes", (n % 2 == 0 ? 128 : 32) * kMiB}});
        EXPECT_TRUE(reply.status == 200 || reply.status == 404 || reply.status == 409 || reply.status == 500)
            << reply.json;
      }
    }};
    bed_.Do("DELETE", "/v1/vfs/a");
    changer.join();
    EXPECT_EQ(0u, Promised());
  }
}

}  // namespace
}  // namespace vgpud::daemon
