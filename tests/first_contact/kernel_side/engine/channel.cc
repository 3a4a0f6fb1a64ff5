// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/engine/channel.h"

#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "tests/first_contact/kernel_side/engine/compute_engine.h"
#include "tests/first_contact/kernel_side/engine/copy_engine.h"

namespace vgpud::kernel_side {
namespace {

// The low byte of a class says which engine it is of, in all generations.
constexpr struct {
  uint8_t low_byte;
  std::unique_ptr<Engine> (*make)(Surroundings& surroundings);
} kEngines[] = {{0xb5, &MakeCopyEngine}, {0xc0, &MakeComputeEngine}};

// What a program finds in its notifier (NvNotification of nvos.h).
struct Notification {
  uint64_t time;
  uint32_t error;
  uint16_t information, status;
};
static_assert(sizeof(Notification) == 16);
constexpr uint16_t kErrorStatus = 0xffff;

}  // namespace

std::unique_ptr<Engine> MakeEngine(uint32_t object_class, Surroundings& surroundings) {
  for (const auto& engine : kEngines)
    if (engine.low_byte == (object_class & 0xff)) return engine.make(surroundings);
  return nullptr;
}

Channel::Channel(Setup setup) : setup_(std::move(setup)), host_(MakeHostEngine(*this)) {}

bool Channel::Run() {
  bool did = false;
  while (!failure_ && scheduled_ && enabled_ && FetchNext()) {
    while (!methods_.empty()) {
      const Outcome outcome = Do(methods_.front());
      if (outcome == Outcome::kWait) return did;
      did = true;
      if (outcome == Outcome::kFault) {
        Fail(Xid::kMmuFault);
        return true;
      }
      methods_.pop_front();
    }
    fetched_ = false;
    get_ = (get_ + 1) % setup_.entries;
    setup_.userd->Write(setup_.userd_offset + kUserdGet, std::as_bytes(std::span{&get_, 1}));
    did = true;
  }
  return did;
}

bool Channel::FetchNext() {
  if (fetched_) return true;
  uint32_t put = get_;
  if (!setup_.userd->Read(setup_.userd_offset + kUserdPut, std::as_writable_bytes(std::span{&put, 1}))) return false;
  if (put == get_) return false;
  FifoEntry entry{};
  bool good = put < setup_.entries &&
              space().Read(setup_.fifo + sizeof entry * get_, std::as_writable_bytes(std::span{&entry, 1}));
  std::vector<uint32_t> words(good ? entry.words() : 0);
  good = good && space().Read(entry.address(), std::as_writable_bytes(std::span(words)));
  if (!good) LOG(kWarning, "entry {} of {} of a FIFO at {:x} can't be read", get_, put, setup_.fifo);
  if (!good || !Decode(words)) {
    Fail(good ? Xid::kIllegalMethod : Xid::kMmuFault);
    return false;
  }
  fetched_ = true;
  return true;
}

bool Channel::Decode(const std::vector<uint32_t>& words) {
  for (size_t at = 0; at < words.size();) {
    const MethodHeader header{words[at++]};
    if (header.kind() == MethodHeader::kOld && header.value == 0) continue;
    if (header.kind() == MethodHeader::kImmediate) {
      methods_.push_back({header.subchannel(), header.method(), header.count()});
      continue;
    }
    const bool rises = header.kind() == MethodHeader::kRising, once = header.kind() == MethodHeader::kRisingOnce;
    if ((!rises && !once && header.kind() != MethodHeader::kSame) || header.count() > words.size() - at) {
      LOG(kWarning, "a pushbuffer's word {} of {} is no header: {:08x}", at - 1, words.size(), header.value);
      return false;
    }
    for (uint32_t i = 0; i < header.count(); ++i) {
      const uint32_t steps = rises ? i : once && i > 0 ? 1 : 0;
      methods_.push_back({header.subchannel(), header.method() + 4 * steps, words[at++]});
    }
  }
  return true;
}

Outcome Channel::Do(const Method& method) {
  if (method.method >= host::kEnd) {
    Engine* const engine = engines_[method.subchannel].get();
    return engine == nullptr ? Outcome::kDone : engine->Take(method.method, method.value);
  }
  if (method.method == host::kSetObject) engines_[method.subchannel] = MakeEngine(method.value & 0xffff, *this);
  const Outcome outcome = host_->Take(method.method, method.value);
  if (outcome == Outcome::kFault) LOG(kWarning, "host method {:x} = {:x} faults", method.method, method.value);
  return outcome;
}

void Channel::Fail(Xid why) {
  if (failure_) return;
  failure_ = why;
  methods_.clear();
  const Notification notification{MonotonicNs(), static_cast<uint32_t>(why), 0, kErrorStatus};
  if (setup_.notifier) setup_.notifier->Write(0, std::as_bytes(std::span{&notification, 1}));
  LOG(kWarning, "Xid {}: a channel is stopped", static_cast<uint32_t>(why));
  setup_.interrupt(false);
  setup_.interrupt(true);  // whoever waits for work looks at the error
}

}  // namespace vgpud::kernel_side
