// SPDX-License-Identifier: Apache-2.0
#include "vfio/channel/charged_files.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <utility>

namespace vgpud::vfio {

Result<void> ChargedFiles::Take(uint64_t bytes) {
  if (!ledger_.Take(bytes))
    return Fail(std::errc::not_enough_memory,
                fmt::format("pinned memory of {} bytes: the VF has {} of {} bytes of host memory in use", bytes,
                            ledger_.used(), ledger_.quota()));
  changed_();
  return {};
}

void ChargedFiles::Give(const Self& self, uint64_t bytes) {
  const auto files = self.lock();
  if (files == nullptr) return;
  (*files)->ledger_.Give(bytes);
  (*files)->changed_();
}

Result<SharedFd> ChargedFiles::ChargeClients(ForeignFd file, uint64_t bytes) {
  TRY(Take(bytes));
  // The client may be the one who waits for it to be closed.
  const auto holder = std::make_shared<const ForeignFd>(std::move(file));
  return SharedFd{&holder->unique(), [self = Self(self_), holder, bytes](const UniqueFd*) { Give(self, bytes); }};
}

Result<SharedFd> ChargedFiles::Charge(UniqueFd file, uint64_t bytes, FileWork::Client client) {
  TRY(Take(bytes));
  const auto let_go = [self = Self(self_), client = std::move(client), bytes](const UniqueFd* closed) {
    Empty(self, client, std::shared_ptr<const UniqueFd>(closed), bytes);
  };
  return SharedFd{new UniqueFd(std::move(file)), let_go};
}

// The client may hold the file for longer: whatever it then has in there is its own.
void ChargedFiles::Empty(const Self& self, FileWork::Client client, std::shared_ptr<const UniqueFd> file,
                         uint64_t bytes) {
  const auto files = self.lock();
  if (files == nullptr) return;
  (*files)->work_.Do(
      std::move(client),
      [file = std::move(file), bytes] {
        ::fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
      },
      [self, bytes] { Give(self, bytes); });
}

}  // namespace vgpud::vfio
