// SPDX-License-Identifier: Apache-2.0
// The hosts are asked for their CUDA version once; those that do not answer, a while later again.
#include "guest-driver-shim/libcuda/driver/version.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "tests/unit/nvml/status_server.h"

namespace vgpud::cuda {
namespace {

using Clock = HostVersions::Clock;

class Asked {
 public:
  HostVersions versions{[this] {
                          ++times;
                          return next;
                        },
                        [this] { return now; }};
  HostAnswer next;
  int times = 0;
  Clock::time_point now{};
};

TEST(HostVersions, AnAnswerOfAllIsKept) {
  Asked asked;
  asked.next = {12020, true};
  EXPECT_EQ(12020, asked.versions.Get());
  asked.next = {12040, true};
  asked.now += 1000 * HostVersions::kWhile;
  EXPECT_EQ(12020, asked.versions.Get());
  EXPECT_EQ(1, asked.times);
}

TEST(HostVersions, AHostThatDoesNotAnswerIsAskedAgainAfterAWhile) {
  Asked asked;
  asked.next = {kDriverVersion, false};
  for (int call = 0; call < 10; ++call) EXPECT_EQ(kDriverVersion, asked.versions.Get());
  EXPECT_EQ(1, asked.times);
  asked.now += HostVersions::kWhile - Clock::duration(1);
  EXPECT_EQ(kDriverVersion, asked.versions.Get());
  EXPECT_EQ(1, asked.times);
  asked.next = {12020, true};
  asked.now += Clock::duration(1);
  EXPECT_EQ(12020, asked.versions.Get());
  EXPECT_EQ(12020, asked.versions.Get());
  EXPECT_EQ(2, asked.times);
}

TEST(HostVersions, ThreadsWaitForOneAnswer) {
  std::atomic<int> times{0};
  HostVersions versions(
      [&] {
        ++times;
        std::this_thread::yield();
        return HostAnswer{12020, true};
      },
      Clock::now);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_EQ(12020, versions.Get()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(1, times);
}

vgpu_status Of(uint32_t version) {
  vgpu_status status{};
  status.bytes = sizeof status;
  status.cuda_version = version;
  return status;
}

TEST(HostVersions, TheLowestCounts) {
  StatusServer first([](const auto&) { return StatusServer::Reply(Of(12040)); });
  StatusServer second([](const auto&) { return StatusServer::Reply(Of(12020)); });
  StatusServer none([](const auto&) { return StatusServer::Reply(Of(0)); });
  const HostAnswer answer = AskHosts({first.path(), second.path(), none.path(), "fd:9"});
  EXPECT_EQ(12020, answer.version);
  EXPECT_TRUE(answer.of_all);
}

TEST(HostVersions, AHostThatGoesAwayHasNotAnsweredAndTheOthersCount) {
  StatusServer gone([](const auto&) { return std::string(); });
  StatusServer there([](const auto&) { return StatusServer::Reply(Of(12020)); });
  const HostAnswer answer = AskHosts({gone.path(), there.path()});
  EXPECT_EQ(12020, answer.version);
  EXPECT_FALSE(answer.of_all);
}

}  // namespace
}  // namespace vgpud::cuda
