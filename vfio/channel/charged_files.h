// SPDX-License-Identifier: Apache-2.0
// Files that clients of the host share with executors, as host memory of the VF.
#pragma once

#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/foreign_fd.h"
#include "vfio/memory/dma_table.h"
#include "vfio/memory/file_work.h"
#include "vfio/memory/memory_ledger.h"

namespace vgpud::vfio {

// Of the loop's thread.
class ChargedFiles {
 public:
  // `ledger` outlives it; `changed` is called when what is counted there has.
  ChargedFiles(EventLoop& loop, MemoryLedger& ledger, std::function<void()> changed)
      : work_(loop), ledger_(ledger), changed_(std::move(changed)) {}

  // Counts `file` of `bytes`, which `client` shares with its executor, until the last to hold it has let go and it has
  // been emptied.
  //   ENOMEM it would exceed the quota
  [[nodiscard]] Result<SharedFd> Charge(UniqueFd file, uint64_t bytes, FileWork::Client client);
  // The same for a file that is the client's own: nothing is emptied.
  //   ENOMEM it would exceed the quota
  [[nodiscard]] Result<SharedFd> ChargeClients(ForeignFd file, uint64_t bytes);
  // What is done on the files of a client, one after the other.
  FileWork& work() { return work_; }

 private:
  using Self = std::weak_ptr<ChargedFiles*>;
  [[nodiscard]] Result<void> Take(uint64_t bytes);
  // Nothing when it is gone.
  static void Give(const Self& self, uint64_t bytes);
  static void Empty(const Self& self, FileWork::Client client, std::shared_ptr<const UniqueFd> file, uint64_t bytes);

  FileWork work_;
  MemoryLedger& ledger_;
  std::function<void()> changed_;
  const std::shared_ptr<ChargedFiles*> self_ = std::make_shared<ChargedFiles*>(this);  // gone when this is
};

}  // namespace vgpud::vfio
