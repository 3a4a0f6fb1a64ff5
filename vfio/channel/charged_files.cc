// SPDX-License-Identifier: Apache-2.0
// Files that clients of the host share with executors, as host memory of the VF.
#include <fcntl.h>
#include <fmt/core.h>

#include <utility>

#include "vfio/channel/channel_table.h"

namespace vgpud::vfio {

Result<void> ChannelTable::TakeHostMemory(uint64_t bytes) {
  if (!ledgers_.host.Take(bytes))
    return Fail(std::errc::not_enough_memory,
                fmt::format("pinned memory of {} bytes: the VF has {} of {} bytes of host memory in use", bytes,
                            ledgers_.host.used(), ledgers_.host.quota()));
  config_.usage_changed();
  return {};
}

Result<SharedFd> ChannelTable::ChargeClientFile(ForeignFd file, uint64_t bytes) {
  TRY(TakeHostMemory(bytes));
  // The client may be the one who waits for it to be closed.
  const auto holder = std::make_shared<const ForeignFd>(std::move(file));
  return SharedFd{&holder->unique(), [self = std::weak_ptr(self_), holder, bytes](const UniqueFd*) {
                    const auto table = self.lock();
                    if (table == nullptr) return;
                    (*table)->ledgers_.host.Give(bytes);
                    (*table)->config_.usage_changed();
                  }};
}

Result<SharedFd> ChannelTable::ChargeFile(UniqueFd file, uint64_t bytes, FileWork::Client client) {
  TRY(TakeHostMemory(bytes));
  const auto let_go = [self = std::weak_ptr(self_), client = std::move(client), bytes](const UniqueFd* closed) {
    std::shared_ptr<const UniqueFd> last(closed);
    if (const auto table = self.lock()) (*table)->EmptyFile(client, std::move(last), bytes);
  };
  return SharedFd{new UniqueFd(std::move(file)), let_go};
}

// The client may hold the file for longer: whatever it then has in there is its own.
void ChannelTable::EmptyFile(FileWork::Client client, std::shared_ptr<const UniqueFd> file, uint64_t bytes) {
  file_work_.Do(
      std::move(client),
      [file = std::move(file), bytes] {
        ::fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
      },
      [self = std::weak_ptr(self_), bytes] {
        const auto table = self.lock();
        if (table == nullptr) return;
        (*table)->ledgers_.host.Give(bytes);
        (*table)->config_.usage_changed();
      });
}

void ChannelTable::AfterFileWork(FileWork::Client client, std::function<void()> done) {
  file_work_.Do(
      std::move(client), [] {}, std::move(done));
}

}  // namespace vgpud::vfio
