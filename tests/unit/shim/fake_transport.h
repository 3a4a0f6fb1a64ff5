// SPDX-License-Identifier: Apache-2.0
// A Transport to a FakeExecutor in the same process.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "guest-driver-shim/libcuda/channel/os.h"
#include "guest-driver-shim/libcuda/channel/transport.h"
#include "tests/unit/shim/fake_executor.h"

namespace vgpud {

class FakeTransport : public cuda::Transport {
 public:
  explicit FakeTransport(uint64_t bytes = VGPU_CHANNEL_BYTES)
      : memory_(memfd_create("channel", MFD_CLOEXEC)), kick_(eventfd(0, EFD_CLOEXEC)), call_(eventfd(0, EFD_CLOEXEC)) {
    (void)!ftruncate(memory_.get(), static_cast<off_t>(bytes));
    area_ = {static_cast<std::byte*>(cuda::MapShared(memory_.get(), bytes, 0)), bytes};
    info_ = FakeInfo(bytes);
    executor_ = std::make_unique<FakeExecutor>(area_, kick_.get(), call_.get());
  }
  ~FakeTransport() override {
    executor_.reset();
    munmap(area_.data(), area_.size());
  }

  FakeExecutor& executor() { return *executor_; }

  void Kick() override {
    const uint64_t one = 1;
    (void)!write(kick_.get(), &one, sizeof one);
  }
  Wake Sleep(int timeout_ms) override {
    pollfd p{call_.get(), POLLIN, 0};
    if (poll(&p, 1, timeout_ms) <= 0) return Wake::kTimeout;
    uint64_t count = 0;
    (void)!read(call_.get(), &count, sizeof count);
    return Wake::kEvent;
  }
  int AllocBuffer(uint64_t, Buffer*) override { return ENOMEM; }
  int FreeBuffer(const Buffer&) override { return EINVAL; }
  bool MapAgain(const Buffer&, void*) override { return false; }

 private:
  cuda::OwnedFd memory_, kick_, call_;
  std::unique_ptr<FakeExecutor> executor_;
};

}  // namespace vgpud
