// SPDX-License-Identifier: Apache-2.0
// What vgpud-keep does: it holds descriptors, by name, for a vgpud that may be killed at any moment, and gives copies
// of them to the next one. It knows nothing of what they are, but for one thing: when its vgpud is gone it takes the
// GPU back from whoever has it, in the grant pages that it was told of, as nobody else would.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/message.h"
#include "vgpud/keep/keep_link.h"

namespace vgpud::daemon {

class FdKeeper {
 public:
  // `session`: to the vgpud that started it. `listening`: SOCK_SEQPACKET, where the next one connects.
  FdKeeper(UniqueFd session, UniqueFd listening) : session_(std::move(session)), listening_(std::move(listening)) {}

  // Serves until it is told to end, or has no vgpud and holds nothing.
  void Run();

 private:
  struct Held {
    std::vector<ForeignFd> fds;
    std::vector<std::byte> note;
    uint32_t grant_page = 0;
    Mapping grant;  // if it has one
  };
  // False: it is over.
  [[nodiscard]] bool OnSession();
  [[nodiscard]] bool Handle(Message& message);
  void Store(const keep::Entry& entry, Message& message);
  void Forget(std::string_view name);
  void OnConnection();
  // Is this a vgpud that may have everything? A bounded wait for its first message.
  bool IsVgpud(int socket) const;
  [[nodiscard]] Result<void> GiveAll(int socket) const;
  void LoseSession();
  void EndTurns() const;

  UniqueFd session_;
  const UniqueFd listening_;
  std::array<std::byte, keep::kSecretBytes> secret_{};
  bool has_secret_ = false;
  std::map<std::string, Held, std::less<>> held_;
};

}  // namespace vgpud::daemon
