// SPDX-License-Identifier: Apache-2.0
// This executor's share of the VF's VRAM. vgpud-vf grants it in chunks; a request travels over the link and its answer
// comes back later, so every step here is a question that the caller asks again.
#pragma once

#include <cstdint>
#include <optional>

namespace vgpud::exec {

class VramShare {
 public:
  explicit VramShare(uint64_t quota) : quota_(quota) {}

  enum class Answer { kGranted, kRefused, kAsk };
  // May `need` more bytes be taken? kAsk: a request is under way, ask again after OnReply.
  Answer Reserve(uint64_t need);
  void Use(uint64_t bytes) { used_ += bytes; }
  // Gives bytes back; whole chunks that are no longer needed will be returned to the VF.
  void Return(uint64_t bytes);
  struct Info {
    uint64_t free;
    uint64_t total;
  };
  // What the VF has left, nullopt while the question is under way.
  std::optional<Info> Query();

  // The request to send now, if any: bytes wanted, 0 = only tell the use, negative = given back. At most one is out.
  std::optional<int64_t> TakeRequest();
  void OnReply(int64_t delta, bool ok, uint64_t vf_used);

  uint64_t quota() const { return quota_; }
  // What the whole VF may have from now on; what was granted stays.
  void SetQuota(uint64_t quota) { quota_ = quota; }
  uint64_t used() const { return used_; }
  uint64_t granted() const { return granted_; }

 private:
  static constexpr uint64_t kChunk = 2 << 20;
  uint64_t quota_;
  uint64_t granted_ = 0;
  uint64_t used_ = 0;
  uint64_t vf_used_ = 0;
  uint64_t exact_ = 0;  // the shortfall behind the request that is out
  bool wish_ = false;   // a Reserve waits for its answer: nothing is given back meanwhile
  bool refused_ = false;
  bool fresh_ = false;  // vf_used_ answers a Query
  std::optional<int64_t> request_;
  bool out_ = false;
};

}  // namespace vgpud::exec
