// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/irq_table.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <bit>
#include <utility>

#include "vfio/device/bounded_write.h"

namespace vgpud::vfio {
namespace {

struct IrqKind {
  uint32_t flags;
  uint32_t count;
};
constexpr IrqKind kKinds[wire::kIrqs] = {
    {wire::kIrqEventFd | wire::kIrqMaskable | wire::kIrqAutoMasked, 1},  // INTx
    {wire::kIrqEventFd, 1},                                              // MSI
    {0, 0},                                                              // MSI-X: QEMU 11.1 aborts when it is unplugged
    {wire::kIrqEventFd, 1},                                              // ERR
    {wire::kIrqEventFd, 1},                                              // REQ
};
constexpr uint32_t kDataBits = wire::kIrqDataNone | wire::kIrqDataBool | wire::kIrqDataEventFd;
constexpr uint32_t kActionBits = wire::kIrqMask | wire::kIrqUnmask | wire::kIrqTrigger;

// An eventfd has no file type. Asked without asking a file system's server, who could let us wait.
Result<void> CheckEventFd(int fd) {
  struct statx st {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) != 0) return FailErrno("SET_IRQS: statx");
  if ((st.stx_mode & S_IFMT) != 0) return Fail(std::errc::invalid_argument, "SET_IRQS: the fd is no eventfd");
  const int flags = ::fcntl(fd, F_GETFL);
  if ((flags & O_ACCMODE) != O_RDWR || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Fail(std::errc::invalid_argument, "SET_IRQS: the eventfd cannot be written without waiting");
  return {};
}

}  // namespace

Result<wire::IrqInfo> IrqTable::Info(uint32_t index) {
  if (index >= wire::kIrqs) return Fail(std::errc::invalid_argument, fmt::format("GET_IRQ_INFO index {}", index));
  return wire::IrqInfo{sizeof(wire::IrqInfo), kKinds[index].flags, index, kKinds[index].count};
}

Result<void> IrqTable::Set(const wire::SetIrqs& request, std::span<const std::byte> data, std::span<ForeignFd> fds) {
  const uint32_t data_kind = request.flags & kDataBits;
  const uint32_t action = request.flags & kActionBits;
  if (std::popcount(data_kind) != 1 || std::popcount(action) != 1 || (request.flags & ~(kDataBits | kActionBits)) != 0)
    return Fail(std::errc::invalid_argument, fmt::format("SET_IRQS flags {:#x}", request.flags));
  if (request.index >= wire::kIrqs)
    return Fail(std::errc::invalid_argument, fmt::format("SET_IRQS index {}", request.index));
  const IrqKind& kind = kKinds[request.index];
  if (request.start > kind.count || request.count > kind.count - request.start)
    return Fail(std::errc::invalid_argument,
                fmt::format("SET_IRQS index {}: {}+{} of {}", request.index, request.start, request.count, kind.count));
  // A count of 0 takes all vectors of the index away, and says nothing else.
  if (request.count == 0 &&
      (data_kind != wire::kIrqDataNone || action != wire::kIrqTrigger || request.start != 0 || !fds.empty()))
    return Fail(std::errc::invalid_argument,
                fmt::format("SET_IRQS index {}: no vectors, but flags {:#x}, start {}, {} fds", request.index,
                            request.flags, request.start, fds.size()));
  if (data_kind != wire::kIrqDataEventFd && !fds.empty())
    return Fail(std::errc::invalid_argument, "SET_IRQS: fds without DATA_EVENTFD");
  if (const size_t expected = data_kind == wire::kIrqDataBool ? request.count : 0; data.size() != expected)
    return Fail(std::errc::invalid_argument,
                fmt::format("SET_IRQS: {} bytes of data instead of {}", data.size(), expected));
  ForeignFd& event = events_[request.index];
  if (action != wire::kIrqTrigger) {
    if ((kind.flags & wire::kIrqMaskable) == 0)
      return Fail(std::errc::invalid_argument, fmt::format("SET_IRQS index {} cannot be masked", request.index));
    // The client masks the line each time that it has seen it, and unmasks it when the guest has looked at the device.
    if (action == wire::kIrqUnmask && line_) Raise(wire::kIntx);
    return {};
  }
  if (data_kind == wire::kIrqDataEventFd) {
    if (!fds.empty() && fds.size() != request.count)
      return Fail(std::errc::invalid_argument,
                  fmt::format("SET_IRQS: {} fds for {} vectors", fds.size(), request.count));
    for (const ForeignFd& fd : fds) TRY(CheckEventFd(fd.get()));
    event = fds.empty() ? ForeignFd{} : std::move(fds[0]);
    return {};
  }
  if (request.count == 0) {
    event.Reset();
    return {};
  }
  if (data_kind == wire::kIrqDataNone || data[0] != std::byte{0}) Raise(static_cast<wire::Irq>(request.index));
  return {};
}

void IrqTable::Raise(wire::Irq irq) {
  if (!events_[irq]) return;
  if (SignalWithoutWaiting(events_[irq].get())) return;
  events_[irq].Reset();
  LOG_LIMITED(limiter_, kWarning,
              "interrupt {} dropped until the client sets it again: its eventfd was full and made this process wait",
              static_cast<uint32_t>(irq));
}

void IrqTable::Interrupt() {
  if (events_[wire::kMsi]) return Raise(wire::kMsi);
  if (!std::exchange(line_, true)) Raise(wire::kIntx);
}

bool IrqTable::TakeLine() { return std::exchange(line_, false); }

void IrqTable::Clear() {
  line_ = false;
  for (ForeignFd& event : events_) event.Reset();
}

}  // namespace vgpud::vfio
