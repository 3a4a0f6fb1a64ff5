// SPDX-License-Identifier: Apache-2.0
// A small honest executor: serves one channel area from a thread of its own, with device memory that is host memory.
// Its modules have two kernels, `vectoradd` (float c[i] = a[i] + b[i]) and `narrow` (of few threads; does nothing), and
// a variable, `variable`, of 200 bytes. Everything runs at once and in ring order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_ioctl.h"

namespace vgpud {

class FakeExecutor {
 public:
  // Writes the header's constants. `kick_fd`: eventfd or socket of the doorbell, `call_fd`: of the interrupt.
  FakeExecutor(std::span<std::byte> area, int kick_fd, int call_fd);
  ~FakeExecutor();

  void AddBuffer(uint32_t id, std::span<std::byte> memory);
  void RemoveBuffer(uint32_t id);

  // While held, nothing is consumed.
  void Hold(bool held);
  // The executor dies as a killed one does.
  void Die(const std::string& text);
  void Poison(uint32_t error, const std::string& text);

  // `f` is called with each entry and its payload before it runs; a non-zero answer fails the entry.
  void OnEntry(std::function<uint32_t(const vgpu_sqe&, std::span<const std::byte>)> f);

  uint64_t entries() const { return entries_.load(); }
  uint64_t kicks() const { return kicks_.load(); }
  uint64_t live_allocations();
  std::vector<std::byte> image(uint64_t module);

 private:
  struct Reply {
    uint32_t status = 0;
    uint64_t value[6] = {};
  };
  // Behind a gate that is closed, as far as streams and events say; other streams go on. What it takes in is its own.
  struct Waiting {
    vgpu_sqe entry;
    std::span<std::byte> payload;
    std::vector<std::byte> own;
  };
  Waiting MakeWaiting(const vgpu_sqe& entry, std::span<std::byte> payload);
  void Release();
  void Serve();
  vgpu_event_slot& Slot(uint64_t slot) const;
  uint64_t Gate(uint64_t gate) const;
  // Must it wait for the first `before` of those that wait?
  bool MustWait(const vgpu_sqe& entry, size_t before) const;
  // False: none of them could go on.
  bool RunWaiting();
  void Finish(const vgpu_sqe& entry, std::span<std::byte> payload);
  Reply Run(const vgpu_sqe& entry, std::span<std::byte> payload);
  Reply FindFunction(const vgpu_sqe& entry, std::span<std::byte> payload);
  Reply WriteValue(const vgpu_sqe& entry);
  Reply NameFunction(const vgpu_sqe& entry, std::span<std::byte> payload);
  Reply FindGlobal(std::span<const std::byte> name);
  Reply CopyBuffer(const vgpu_sqe& entry);
  Reply Fill(const vgpu_sqe& entry);
  Reply RecordEvent(const vgpu_sqe& entry);
  Reply CreateTexture(const vgpu_sqe& entry, std::span<std::byte> payload);
  Reply Launch(const vgpu_sqe& entry, std::span<const std::byte> payload);
  std::byte* At(uint64_t address, uint64_t bytes);
  void Interrupt(bool always);

  // Of the serving thread.
  std::vector<Waiting> waiting_;
  uint32_t cq_tail_ = 0;
  uint64_t taken_ = 0;  // the end of the payload of all entries
  vgpu_channel_header& header_;
  const std::span<std::byte> area_;
  const int kick_fd_, call_fd_;
  std::atomic<bool> stop_{false}, held_{false}, dead_{false};
  std::atomic<uint64_t> entries_{0}, kicks_{0};
  std::mutex mutex_;  // everything below
  std::function<uint32_t(const vgpu_sqe&, std::span<const std::byte>)> on_entry_;
  std::map<uint64_t, std::vector<std::byte>> memory_;
  std::map<uint64_t, std::vector<std::byte>> images_;
  std::map<uint32_t, std::span<std::byte>> buffers_;
  // Managed memory is mapped there; each sanitizer leaves another part of the address space to programs.
#ifdef __SANITIZE_ADDRESS__
  uint64_t next_address_ = 0x700000000000;
#else
  uint64_t next_address_ = 0x1000000000;
#endif
  const uint64_t variable_address_ = next_address_ + 0x2000000f80;  // ends on the page after the one that it begins on
  std::set<uint64_t> textures_;
  uint64_t next_texture_ = 0x7e0000001;
  uint64_t next_memory_ = 70;  // of MEM_CREATE
  uint64_t clock_ns_ = 0;
  uint32_t posted_error_ = 0;
  std::thread thread_;
};

// What a VF says about itself.
vgpu_ioc_info FakeInfo(uint64_t channel_bytes);
vgpu_device_info FakeDevice();

}  // namespace vgpud
