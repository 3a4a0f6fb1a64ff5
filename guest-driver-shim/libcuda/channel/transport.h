// SPDX-License-Identifier: Apache-2.0
// The way to a virtual function: its channel memory, its doorbell, its interrupt, and pinned buffers. Two
// implementations: /dev/vgpuN in a guest, the VF's channel socket without a VM.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "guest-driver-shim/include/uapi/vgpu_channel_sock.h"
#include "guest-driver-shim/libcuda/channel/spin_time.h"

namespace vgpud::cuda {

class Transport {
 public:
  virtual ~Transport() = default;

  // Memory that the device shares: host pointers into it may be used by BUF_IN and BUF_OUT.
  struct Buffer {
    uint32_t id = 0;
    void* address = nullptr;  // of the transport's mapping, if it has one
    uint64_t bytes = 0;       // a multiple of 4096
    uint64_t map_offset = 0;  // the transport's own
  };
  enum class Wake { kEvent, kTimeout, kLost };
  static constexpr const char* kEnded = "the virtual GPU ended this process' channel";
  static constexpr const char* kClosed =
      "the channel to the virtual GPU is lost: the program closed descriptors that it had not opened";

  const vgpu_ioc_info& info() const { return info_; }
  // Makes the channel, where opening the way to the VF has not made it. Nothing else works before. False and a sentence
  // in `why`: it may be tried again.
  virtual bool MakeChannel(std::string*) { return true; }
  std::span<std::byte> area() const { return area_; }

  // May buffers be mapped where the device says? Not in a process that keeps addresses for itself.
  virtual bool maps_buffers() const { return true; }
  virtual SpinTime::Range spin_range() const { return {}; }
  // Why it was lost, if the device has not said: kEnded or kClosed. Any thread.
  virtual const char* why_lost() const { return kEnded; }
  // Closes in a forked child what would keep the channel open when this process is gone. Async-signal-safe; nothing
  // else is called in the child.
  virtual void CloseInChild() {}
  // Rings the doorbell. Any thread.
  virtual void Kick() = 0;
  // Sleeps until the device has interrupted since the last Sleep, or is gone, or `timeout_ms` passed. One thread.
  virtual Wake Sleep(int timeout_ms) = 0;
  // 0 or an errno. Any thread.
  virtual int AllocBuffer(uint64_t bytes, Buffer* out) = 0;
  virtual int FreeBuffer(const Buffer& buffer) = 0;
  // Buffers of whole pages that exist already: those of a file of the caller's, and those that the process has at an
  // address, whatever they are. None is mapped by this. 0 or an errno, ENOTSUP where that is not possible. Any thread.
  virtual int ImportBuffer(int, uint64_t, uint64_t, Buffer*) { return ENOTSUP; }
  virtual int PinBuffer(uint64_t, uint64_t, Buffer*) { return ENOTSUP; }
  // A second mapping of it, in place of what lies at `at`. Any thread.
  virtual bool MapAgain(const Buffer& buffer, void* at) = 0;

 protected:
  vgpu_ioc_info info_{};
  std::span<std::byte> area_;
};

// nullptr and a sentence in `why` when it cannot be opened. An open device file has no channel yet, which would cost
// the host an executor; an open socket has. `path` of a channel socket: where it is, or "fd:N": the connection is open
// already, as descriptor N, which it takes over; then nothing is mapped later on.
std::unique_ptr<Transport> OpenDeviceFile(const std::string& path, std::string* why);
std::unique_ptr<Transport> OpenChannelSocket(const std::string& path, std::string* why);

}  // namespace vgpud::cuda
