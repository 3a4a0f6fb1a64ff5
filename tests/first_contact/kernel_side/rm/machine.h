// SPDX-License-Identifier: Apache-2.0
// The cards, the clients and what they have in common.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/channels/rm_abi.h"
#include "tests/first_contact/kernel_side/files/fuse_mount.h"
#include "tests/first_contact/kernel_side/memory/memory.h"
#include "tests/first_contact/kernel_side/rm/object.h"

namespace vgpud::kernel_side {

using rm::RmStatus;

// Not locked: whoever uses it holds the lock of the machine's threads (main.cc).
class Machine {
 public:
  Machine(const Chip& chip, uint32_t cards, std::string version, Store& store, FuseMount& mount);

  const std::string& version() const { return version_; }
  int major() const;
  std::vector<Card>& cards() { return cards_; }
  Card* FindCard(uint32_t gpu_id);
  Card* FindCard(const std::array<uint8_t, 16>& uuid);
  FuseMount& mount() { return mount_; }

  // nullptr: nothing is left.
  std::shared_ptr<StoredMemory> MakeMemory(uint64_t bytes);
  Client* FindClient(uint32_t handle);
  Client& AddClient(uint32_t handle, uint64_t file);
  void RemoveClient(uint32_t handle);
  void RemoveClientsOf(uint64_t file);
  uint32_t NewHandle() { return next_handle_++; }
  uint32_t NewChannelNumber() { return next_channel_++; }

  // Lets every channel do what there is to do. False: there was nothing.
  bool RunChannels();
  bool has_channels();
  // Wakes what waits for work, or for what goes wrong.
  void Interrupt(bool of_work);
  void KernelLaunched() { ++kernels_; }
  bool holds_kernels() const { return holds_kernels_; }
  uint64_t kernels() const { return kernels_; }

  // What tests do to it. A card that is lost answers nothing any more.
  void Lose(Card& card);
  // Every channel of the card that does compute stops with this error.
  void Fail(Card& card, Xid why);
  // Kernels that are launched from now on do not end until they are let go.
  void HoldKernels(bool hold) { holds_kernels_ = hold; }
  // Each such control is answered by `status` from now on.
  void Refuse(uint32_t command, RmStatus status) { refused_[command] = status; }
  std::optional<RmStatus> RefusalOf(uint32_t command) const;
  // Controls that no table has succeed from now on, to see which a new version of the driver needs.
  void Learn() { learns_ = true; }
  // What such a control is answered; it is noted.
  RmStatus AnswerUnknown(uint32_t command);
  // Those, in the order of their numbers, since the last time.
  std::set<uint32_t> TakeUnknown() { return std::exchange(unknown_, {}); }

 private:
  const std::string version_;
  std::vector<Card> cards_;
  Store& store_;
  FuseMount& mount_;
  std::map<uint32_t, std::unique_ptr<Client>> clients_;
  uint32_t next_handle_ = 0xcaf00000, next_channel_ = 8;
  uint64_t kernels_ = 0;
  bool holds_kernels_ = false;
  std::map<uint32_t, RmStatus> refused_;
  std::set<uint32_t> unknown_;
  bool learns_ = false;
};

}  // namespace vgpud::kernel_side
