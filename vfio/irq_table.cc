#include "vfio/irq_table.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <bit>

namespace vgpud {
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

// An eventfd has no file type. Any other kind could block our write or change what it lands in.
Result<void> CheckEventFd(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return FailErrno("SET_IRQS: fstat");
  if ((st.st_mode & S_IFMT) != 0) return Fail(std::errc::invalid_argument, "SET_IRQS: the fd is no eventfd");
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

Result<void> IrqTable::Set(const wire::SetIrqs& request, std::span<const std::byte> data, std::vector<UniqueFd> fds) {
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
  if (data_kind != wire::kIrqDataEventFd && !fds.empty())
    return Fail(std::errc::invalid_argument, "SET_IRQS: fds without DATA_EVENTFD");
  if (data_kind == wire::kIrqDataBool && data.size() < request.count)
    return Fail(std::errc::invalid_argument, "SET_IRQS: DATA_BOOL is too short");
  UniqueFd& event = events_[request.index];
  if (action != wire::kIrqTrigger) {
    // This device never raises INTx, so its mask changes nothing; an unmask eventfd would never be needed.
    if ((kind.flags & wire::kIrqMaskable) == 0)
      return Fail(std::errc::invalid_argument, fmt::format("SET_IRQS index {} cannot be masked", request.index));
    return {};
  }
  if (data_kind == wire::kIrqDataEventFd) {
    if (!fds.empty() && fds.size() != request.count)
      return Fail(std::errc::invalid_argument,
                  fmt::format("SET_IRQS: {} fds for {} vectors", fds.size(), request.count));
    for (const UniqueFd& fd : fds) TRY(CheckEventFd(fd.get()));
    if (request.count != 0) event = fds.empty() ? UniqueFd{} : std::move(fds[0]);
    return {};
  }
  if (request.count == 0) {
    if (data_kind == wire::kIrqDataNone) event.Reset();
    return {};
  }
  if (data_kind == wire::kIrqDataNone || data[0] != std::byte{0}) Raise(static_cast<wire::Irq>(request.index));
  return {};
}

void IrqTable::Raise(wire::Irq irq) const {
  if (events_[irq]) SignalEventFd(events_[irq].get());
}

void IrqTable::Clear() {
  for (UniqueFd& event : events_) event.Reset();
}

}  // namespace vgpud
