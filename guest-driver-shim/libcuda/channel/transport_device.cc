// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "guest-driver-shim/libcuda/channel/os.h"
#include "guest-driver-shim/libcuda/channel/transport.h"

namespace vgpud::cuda {
namespace {

class DeviceFile : public Transport {
 public:
  explicit DeviceFile(OwnedFd fd) : fd_(KnownFd(std::move(fd))) {}
  ~DeviceFile() override {
    if (!area_.empty()) munmap(area_.data(), area_.size());
  }

  bool Start(std::string* why) { return Learn("VGPU_IOC_INFO", VGPU_IOC_INFO, why); }

  bool MakeChannel(std::string* why) override {
    // The file has one still if it could not be mapped.
    if (info_.channel_bytes == 0 && !Learn("VGPU_IOC_CHANNEL", VGPU_IOC_CHANNEL, why)) return false;
    void* at = MapShared(fd_.get(), info_.channel_bytes, 0);
    if (at == nullptr) {
      *why = std::string("mapping the channel failed: ") + strerror(errno);
      return false;
    }
    area_ = {static_cast<std::byte*>(at), static_cast<size_t>(info_.channel_bytes)};
    return true;
  }

  // Both ways lead through the hypervisor: measured with QEMU's TCG, 150 us for the doorbell and as much for the
  // interrupt.
  SpinTime::Range spin_range() const override {
    return {.most = std::chrono::microseconds{400}, .wake_up = std::chrono::microseconds{150}};
  }

  const char* why_lost() const override { return fd_.IsSame() ? kEnded : kClosed; }
  void CloseInChild() override { fd_.CloseInChild(); }

  void Kick() override { ioctl(fd_.get(), VGPU_IOC_KICK); }

  // Threads of the program wait here one at a time (Channel::WaitUntil).
  Wake Sleep(int timeout_ms) override {
    wait_.timeout_ms = static_cast<__u32>(timeout_ms);
    const bool woken = ioctl(fd_.get(), VGPU_IOC_WAIT, &wait_) == 0;
    if (woken || errno == ETIMEDOUT || errno == EINTR) return woken ? Wake::kEvent : Wake::kTimeout;
    return Wake::kLost;
  }

  int AllocBuffer(uint64_t bytes, Buffer* out) override {
    vgpu_ioc_buffer request{};
    request.bytes = bytes;
    if (const int error = Ask(VGPU_IOC_BUFFER_ALLOC, &request)) return error;
    void* at = MapShared(fd_.get(), bytes, static_cast<off_t>(request.mmap_offset));
    const int error = errno;
    *out = {request.buffer, at, bytes, request.mmap_offset};
    if (at != nullptr) return 0;
    FreeBuffer(*out);
    return error;
  }

  int PinBuffer(uint64_t address, uint64_t bytes, Buffer* out) override {
    vgpu_ioc_buffer request{};
    request.address = address;
    request.bytes = bytes;
    int error = Ask(VGPU_IOC_BUFFER_PIN, &request);
    // Huge pages are fewer pieces; where they lie is nobody's business but the kernel's.
    if (error == E2BIG && madvise(reinterpret_cast<void*>(address), bytes, kCollapse) == 0)
      error = Ask(VGPU_IOC_BUFFER_PIN, &request);
    if (error == EOPNOTSUPP || error == ENOTTY) return ENOTSUP;
    if (error == 0) *out = {request.buffer, nullptr, bytes, 0};
    return error;
  }

  bool MapAgain(const Buffer& buffer, void* at) override {
    if (mmap(at, buffer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_.get(),
             static_cast<off_t>(buffer.map_offset)) == MAP_FAILED)
      return false;
    madvise(at, buffer.bytes, MADV_DONTFORK);
    return true;
  }

  int FreeBuffer(const Buffer& buffer) override {
    if (buffer.address != nullptr) munmap(buffer.address, buffer.bytes);
    vgpu_ioc_buffer request{};
    request.buffer = buffer.id;
    return Ask(VGPU_IOC_BUFFER_FREE, &request);
  }

 private:
  static constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1

  bool Learn(const char* name, unsigned long what, std::string* why) {
    const int error = Ask(what, &info_);
    if (error != 0) *why = std::string(name) + " failed: " + strerror(error);
    return error == 0;
  }

  // Returns 0 or an errno. Repeats the call when a signal of the program interrupts it.
  int Ask(unsigned long what, void* about) const {
    int done;
    do done = ioctl(fd_.get(), what, about);
    while (done != 0 && errno == EINTR);
    return done == 0 ? 0 : errno;
  }

  const KnownFd fd_;
  vgpu_ioc_wait wait_{};
};

}  // namespace

std::unique_ptr<Transport> OpenDeviceFile(const std::string& path, std::string* why) {
  OwnedFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) {
    *why = path + ": " + strerror(errno);
    return nullptr;
  }
  auto device = std::make_unique<DeviceFile>(std::move(fd));
  if (!device->Start(why)) {
    *why = path + ": " + *why;
    return nullptr;
  }
  return device;
}

}  // namespace vgpud::cuda
