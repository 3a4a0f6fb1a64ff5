// SPDX-License-Identifier: Apache-2.0
// A vgpud with executors that burn time, set and asked as programs do it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/vgpud/vgpud_bed.h"
#include "tools/vgpuctl/http_client.h"

namespace vgpud::daemon {

using namespace std::chrono_literals;
using Json = nlohmann::json;

struct Reply {
  int status = -1;
  Json json;
};

// A daemon with VFs and an open channel each, talked to as programs do.
class PolicyBed {
 public:
  explicit PolicyBed(const std::vector<std::string>& more_args = {}) : bed_(more_args) {}

  Reply Ask(const char* method, const std::string& path, const Json& body = {}) const {
    const auto reply = tools::HttpRequest(bed_.runtime_dir() + "/control.sock", method, path,
                                          body.is_null() ? std::string() : body.dump(), 20s);
    if (!reply) return {-1, {{"error", reply.error().context}}};
    return {reply->status, Json::parse(reply->body, nullptr, false)};
  }
  // The same, and it must succeed.
  Json Do(const char* method, const std::string& path, const Json& body = {}) const {
    Reply reply = Ask(method, path, body);
    EXPECT_TRUE(reply.status == 200 || reply.status == 201) << method << " " << path << ": " << reply.json;
    return reply.json;
  }
  void Create(const std::string& name, Json knobs = Json::object()) {
    knobs["name"] = name;
    knobs["vram_bytes"] = 1 << 20;
    Do("POST", "/v1/vfs", knobs);
  }
  void Open(const std::string& name) { channels_[name] = bed_.OpenChannel(name); }
  void Close(const std::string& name) {
    channels_.erase(name);
    EXPECT_TRUE(Eventually([&] { return Do("GET", "/v1/vfs/" + name)["executors"] == 0; }));
  }
  // Makes VFs that have work, and waits until all of them have run.
  void Busy(const std::vector<std::string>& names, const Json& knobs = Json::object()) {
    for (const auto& name : names) {
      Create(name, knobs);
      Open(name);
    }
    for (const auto& name : names)
      EXPECT_TRUE(Eventually([&] { return Figure(name, "received_ns") > 0; })) << name << " never ran";
  }
  Json Stats() const { return Do("GET", "/v1/stats"); }
  uint64_t Figure(const std::string& name, const char* field) const {
    return Do("GET", "/v1/stats?vf=" + name)["vfs"][0][field];
  }
  // What each VF received of an interval of `length` on the daemon's own clock, but for switches and the host's delays.
  std::map<std::string, double> Parts(std::chrono::nanoseconds length) const {
    const Json before = Stats();
    Json after = Stats();
    while (Delta(before, after, "now_ns") < static_cast<double>(length.count())) {
      std::this_thread::sleep_for(20ms);
      after = Stats();
    }
    const double time = Delta(before, after, "now_ns") - Delta(before, after, "switch_ns_total") -
                        Delta(before, after, "stall_ns_total");
    std::map<std::string, double> parts;
    for (size_t i = 0; i < after["vfs"].size(); ++i)
      parts[after["vfs"][i]["name"]] = Delta(before["vfs"][i], after["vfs"][i], "received_ns") / time;
    return parts;
  }
  static double Delta(const Json& before, const Json& after, const char* field) {
    return static_cast<double>(after[field].get<uint64_t>()) - static_cast<double>(before[field].get<uint64_t>());
  }
  // All that is configured.
  Json Configured() const {
    Json gpu = Do("GET", "/v1/gpu"), vfs = Do("GET", "/v1/vfs");
    gpu.erase("switch_cost_ns");
    for (Json& vf : vfs["vfs"])
      for (const char* moves : {"events", "throttled_ns", "executors", "utilization", "vram_used_bytes"})
        vf.erase(moves);
    return {{"gpu", gpu}, {"vfs", vfs["vfs"]}};
  }
  const VgpudBed& bed() const { return bed_; }

 private:
  VgpudBed bed_;
  std::map<std::string, UniqueFd> channels_;
};

// What holds between any two snapshots, whatever was changed in between.
inline void ExpectSound(const Json& before, const Json& after) {
  EXPECT_EQ(0, after["impossible_events"]);
  const double used = PolicyBed::Delta(before, after, "run_ns_total") +
                      PolicyBed::Delta(before, after, "switch_ns_total") +
                      PolicyBed::Delta(before, after, "idle_ns_total") +
                      PolicyBed::Delta(before, after, "stall_ns_total") + PolicyBed::Delta(before, after, "leaving_ns");
  EXPECT_NEAR(PolicyBed::Delta(before, after, "now_ns"), used, 1e3);
  EXPECT_GE(after["round"], before["round"]);
  for (size_t i = 0; i < after["vfs"].size(); ++i)
    for (const char* field : {"entitled_ns", "received_ns", "runnable_ns", "waited_ns", "slices", "forced_preemptions",
                              "overrun_ns_total", "worst_overrun_ns", "hangs", "kernels", "warp_instructions"})
      EXPECT_GE(after["vfs"][i][field], before["vfs"][i][field]) << after["vfs"][i]["name"] << " " << field;
}

}  // namespace vgpud::daemon
