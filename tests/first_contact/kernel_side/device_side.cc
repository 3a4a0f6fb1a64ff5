// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/device_side.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iomanip>
#include <sstream>
#include <utility>

#include "gpu/channels/rm_abi.h"
#include "tests/first_contact/kernel_side/abi/requests.h"
#include "tests/first_contact/kernel_side/rm/escapes.h"
#include "tests/first_contact/kernel_side/uvm/uvm_requests.h"

namespace vgpud::kernel_side {
namespace {

// How long the cards wait before they look for work again: they see no doorbell.
constexpr std::chrono::microseconds kShortest{20}, kLongest{1000};

}  // namespace

DeviceSide::DeviceSide(Machine& machine) : machine_(machine), worker_([this] { Work(); }) {}

DeviceSide::~DeviceSide() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    called_.notify_one();
  }
  worker_.join();
}

void DeviceSide::Opened(uint64_t file, size_t node) {
  const std::lock_guard lock(mutex_);
  OpenFile& opened = files_[file];
  opened.node = node;
  if (node == kUvmNode) opened.space = std::make_shared<AddressSpace>();
}

void DeviceSide::Closed(uint64_t file) {
  const std::lock_guard lock(mutex_);
  machine_.RemoveClientsOf(file);
  files_.erase(file);
}

int DeviceSide::Ioctl(IoctlCall& call) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  called_.notify_one();
  const Caller caller(call.thread);
  OpenFile& file = files_[call.file];
  if (call.request == KERNEL_SIDE_MAP) return TellPlace(file, call);
  if (file.node == kUvmNode) return DoUvmRequest(machine_, file, caller, call.request, call.argument);
  if (!rm::IsEscape(call.request)) return ENOTTY;
  return DoEscape(rm::EscapeOf(call.request), {machine_, files_, call.file, caller, call.bytes});
}

// The file of unified memory makes memory of each mapping of it, where the cards have it too; the others were told.
int DeviceSide::TellPlace(OpenFile& file, IoctlCall& call) {
  if (call.bytes.size() < sizeof(kernel_side_map)) return EINVAL;
  auto& asked = *reinterpret_cast<kernel_side_map*>(call.bytes.data());
  auto memory = std::exchange(file.mapped, nullptr);
  uint64_t offset = std::exchange(file.mapped_offset, 0);
  if (file.space) {
    memory = machine_.MakeMemory(asked.bytes);
    offset = 0;
    if (!memory) return ENOMEM;
    file.space->Map(asked.address, asked.bytes, memory, 0);
  }
  const auto place = memory ? memory->ShareThrough(file.node) : std::nullopt;
  if (!place || offset > memory->bytes()) return EINVAL;
  asked.offset = *place + offset;
  return 0;
}

void DeviceSide::Work() {
  auto pause = kShortest;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const bool did = machine_.RunChannels();
    pause = did ? kShortest : std::min(pause * 2, kLongest);
    const uint64_t seen = calls_;
    const auto called = [&] { return ending_ || calls_ != seen; };
    if (machine_.has_channels())
      called_.wait_for(lock, pause, called);
    else
      called_.wait(lock, called);
  }
}

std::string DeviceSide::Order(const std::string& line) {
  std::istringstream words(line);
  std::string order;
  uint32_t first = 0, second = 0;
  words >> order >> std::setbase(0) >> first >> second;
  const std::lock_guard lock(mutex_);
  auto& cards = machine_.cards();
  if (order == "unknown") {
    std::string list;
    for (const uint32_t command : machine_.TakeUnknown()) list += fmt::format(" {:08x}", command);
    return "unknown" + list;
  }
  if (order == "learn") {
    machine_.Learn();
    return "learning";
  }
  if (order == "kernels") return fmt::format("kernels {}", machine_.kernels());
  if (order == "hold" || order == "let-go") {
    machine_.HoldKernels(order == "hold");
    return order;
  }
  if (order == "refuse") {
    machine_.Refuse(first, static_cast<RmStatus>(second));
    return "refused";
  }
  if (first >= cards.size()) return "no such card";
  if (order == "used") return fmt::format("used {}", cards[first].used_bytes);
  if (order == "lose") {
    machine_.Lose(cards[first]);
    return "lost";
  }
  if (order == "fail") {
    machine_.Fail(cards[first], static_cast<Xid>(second));
    return "failed";
  }
  return "no such order";
}

}  // namespace vgpud::kernel_side
