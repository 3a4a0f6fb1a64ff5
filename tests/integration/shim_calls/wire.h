// SPDX-License-Identifier: Apache-2.0
// What the library sends to the executor, seen by the fake one: every entry with its payload, in ring order.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/integration/shim_fixture.h"

struct Sent {
  vgpu_sqe entry;
  std::vector<std::byte> payload;

  std::vector<uint64_t> Args(size_t count) const { return {entry.args, entry.args + count}; }
  template <class T>
  T As(size_t at = 0) const {
    T value{};
    if (at + sizeof value <= payload.size()) memcpy(&value, payload.data() + at, sizeof value);
    return value;
  }
};

class Wire {
 public:
  static Wire& Get() {
    static auto* const wire = new Wire;
    return *wire;
  }
  // The executor's side: what it answers instead of success.
  uint32_t Note(const vgpu_sqe& entry, std::span<const std::byte> payload) {
    std::lock_guard lock(mutex_);
    if (!listening_) return 0;
    sent_.push_back({entry, {payload.begin(), payload.end()}});
    const auto it = refused_.find(entry.op);
    return it != refused_.end() ? it->second : 0;
  }
  void Listen(bool on) {
    std::lock_guard lock(mutex_);
    listening_ = on;
    sent_.clear();
    refused_.clear();
  }
  void Refuse(uint32_t op, uint32_t status) {
    std::lock_guard lock(mutex_);
    if (status == 0) {
      refused_.erase(op);
    } else {
      refused_[op] = status;
    }
  }
  // Those of one operation since the last call for it.
  std::vector<Sent> Take(uint32_t op) {
    std::lock_guard lock(mutex_);
    std::vector<Sent> taken;
    for (const Sent& each : sent_)
      if (each.entry.op == op) taken.push_back(each);
    std::erase_if(sent_, [op](const Sent& each) { return each.entry.op == op; });
    return taken;
  }
  // All since the last call, in the order of the ring.
  std::vector<Sent> TakeAll() {
    std::lock_guard lock(mutex_);
    return std::exchange(sent_, {});
  }

 private:
  std::mutex mutex_;
  bool listening_ = false;
  std::vector<Sent> sent_;
  std::map<uint32_t, uint32_t> refused_;
};

class ShimWire : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    Wire::Get().Listen(true);
  }
  void TearDown() override {
    Wire::Get().Listen(false);
    ShimApi::TearDown();
  }
  // Everything of one operation that was sent since the last call for it; the ring is run empty first.
  static std::vector<Sent> Take(uint32_t op) {
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    return Wire::Get().Take(op);
  }
  static std::vector<Sent> TakeAll() {
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    return Wire::Get().TakeAll();
  }
  static std::vector<std::vector<uint64_t>> ArgsOf(uint32_t op, size_t count) {
    std::vector<std::vector<uint64_t>> args;
    for (const Sent& sent : Take(op)) args.push_back(sent.Args(count));
    return args;
  }
};

using Rows = std::vector<std::vector<uint64_t>>;
