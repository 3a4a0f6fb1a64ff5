// SPDX-License-Identifier: Apache-2.0
// What was counted of one VF, in memory that outlives this process (vgpud-keep holds it): the figures of earlier times
// and of this one, debts, rounds. Two copies, written in turn: whoever is killed while it writes leaves the other
// whole. Nobody but vgpud has it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/mapping.h"
#include "vgpud/gpu/gpu_thread.h"

namespace vgpud::daemon {

class VfLedger {
 public:
  struct Entry {
    VfStats past;  // before this scheduler thread began
    VfStats now;   // since
    uint64_t round = 0;
    uint64_t at_ns = 0;  // CLOCK_MONOTONIC: what is counted up to
    SlotBook::Counted counted{};
    std::array<uint64_t, 4> hung_at_ns{};  // the last times, oldest first; 0: none
  };
  [[nodiscard]] static Result<std::shared_ptr<VfLedger>> Make(const std::string& vf);
  // One that an earlier vgpud made. EPROTO: another build's; nothing in it can be read.
  [[nodiscard]] static Result<std::shared_ptr<VfLedger>> Open(UniqueFd file);

  int fd() const { return file_.get(); }
  // From the next Write on. Before the scheduler thread knows of the VF.
  void SetPast(const VfStats& past) { past_ = past; }
  // Scheduler thread.
  void Write(Entry entry);
  // The last whole one; nullopt: there is none. Nobody writes meanwhile.
  std::optional<Entry> Read() const;
  // Is the VF parked? Main thread.
  void SetParked(bool parked) { page().parked.store(parked); }
  bool parked() const { return page().parked.load() != 0; }

 private:
  struct Page {
    uint32_t magic;
    uint32_t version;
    uint64_t entry_bytes;
    std::atomic<uint64_t> written;  // entries so far: the last is entries[written % 2]
    std::atomic<uint32_t> parked;
    Entry entries[2];
  };
  VfLedger(UniqueFd file, Mapping memory) : file_(std::move(file)), memory_(std::move(memory)) {}
  Page& page() const { return *memory_.At<Page>(0); }
  static uint64_t Bytes() { return (sizeof(Page) + 4095) / 4096 * 4096; }

  const UniqueFd file_;
  const Mapping memory_;
  VfStats past_;
};

// All that `entry` says, with the turn that was under way at its end: its VF had the GPU until `taken_back_ns`, if that
// is not 0, since `granted_ns`.
VfStats TotalOf(const VfLedger::Entry& entry, uint64_t granted_ns, uint64_t taken_back_ns);

}  // namespace vgpud::daemon
