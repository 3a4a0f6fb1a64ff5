// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/control_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/signal_socket.h"
#include "vfio/channel/vf_status.h"

namespace vgpud::vfio {
namespace {

constexpr uint64_t kPage = 4096;
// To look up so many of them takes about as long as the rest of a command.
constexpr uint32_t kSegmentsPerCommand = 32;

// Appends `more` to `pieces`; what continues the last piece in its file and in guest memory is merged into it.
void Append(std::vector<FilePiece>& pieces, FilePiece more) {
  if (!pieces.empty()) {
    FilePiece& last = pieces.back();
    if (last.file == more.file && last.offset + last.bytes == more.offset && last.writable == more.writable &&
        last.guest.first() + last.guest.bytes == more.guest.first()) {
      last.bytes += more.bytes;
      last.guest.bytes += more.guest.bytes;
      return;
    }
  }
  pieces.push_back(std::move(more));
}

// The kernel maps whole pages of a file only: of huge ones an executor would get all that lies in them.
Result<void> CheckWholePages(const Area& area) {
  for (const FilePiece& piece : area.pieces)
    if ((piece.offset | piece.bytes) % piece.page != 0)
      return Fail(
          std::errc::invalid_argument,
          fmt::format("guest memory {:#x}+{:#x} is a part of pages of {} KiB: its memory is in huge pages, which "
                      "can't be shared in parts; give the VM memory without them (QEMU: no hugetlb=on, no "
                      "mem-path on hugetlbfs; libvirt: no <hugepages>)",
                      piece.guest.first(), piece.bytes, piece.page >> 10));
  return {};
}

}  // namespace

struct ControlPage::CommandSpec {
  uint32_t op;
  const char* name;
  bool takes_buffer;
  bool takes_segments;
  Result<void> (ControlPage::*run)(const vgpu_ctrl_cmd&);
};

// What a row does not take must be zero.
const ControlPage::CommandSpec ControlPage::kCommands[] = {
    {VGPU_CTRL_CHANNEL_CREATE, "CHANNEL_CREATE", false, true, &ControlPage::ChannelCreate},
    {VGPU_CTRL_CHANNEL_DESTROY, "CHANNEL_DESTROY", false, false, &ControlPage::ChannelDestroy},
    {VGPU_CTRL_BUFFER_ADD, "BUFFER_ADD", true, true, &ControlPage::BufferAdd},
    {VGPU_CTRL_BUFFER_REMOVE, "BUFFER_REMOVE", true, false, &ControlPage::BufferRemove},
    {VGPU_CTRL_STATUS, "STATUS", false, false, &ControlPage::Status},
};

ControlPage::ControlPage(EventLoop& loop, ChannelTable& channels, const DmaTable& dma, IrqTable& irqs,
                         const VfFigures& figures, EventGuard& guard)
    : loop_(loop),
      channels_(channels),
      dma_(dma),
      irqs_(irqs),
      figures_(figures),
      guard_(guard),
      late_interrupt_(loop.Timer([this] {
        if (std::exchange(interrupt_waits_, false)) irqs_.Interrupt();
      })) {}

void ControlPage::SetAddress(uint64_t address) {
  if (address % kPage != 0)
    LOG_LIMITED(limiter_, kWarning, "vf={} control page {:#x} is not page aligned: ignored", figures_.name, address);
  address_ = address;
  commands_run_ = 0;
  arrays_written_ = false;
}

void ControlPage::RunCommand(uint64_t driver_features) {
  guard_.Count(GuardedEvent::kCommand);
  driver_features_ = driver_features;
  vgpu_ctrl_cmd command{};
  if (!bus_master_ || address_ == 0 || address_ % kPage != 0) return;
  const auto read = dma_.Read(Iova{address_}, std::as_writable_bytes(std::span{&command, 1}));
  if (!read) {
    LOG_LIMITED(limiter_, kWarning, "vf={} control page unreachable: {}", figures_.name, read.error().context);
    return;
  }
  if (!arrays_written_) {
    arrays_written_ = true;
    Write(offsetof(vgpu_ctrl_page, channel_state), state_.data(), sizeof state_);
    Write(offsetof(vgpu_ctrl_page, buffer_ack), buffer_ack_.data(), sizeof buffer_ack_);
    Write(offsetof(vgpu_ctrl_page, events), events_.data(), sizeof events_);
  }
  const auto done = Execute(command);
  if (!done)
    LOG_LIMITED(limiter_, kWarning, "vf={} control command {} channel={} errno={}: {}", figures_.name, command.op,
                command.channel, static_cast<int>(done.error().code), done.error().context);
  const int32_t status = done ? 0 : -static_cast<int32_t>(done.error().code);
  Write(offsetof(vgpu_ctrl_cmd, status), &status, sizeof status);
  ++commands_run_;
}

Result<void> ControlPage::Execute(const vgpu_ctrl_cmd& command) {
  const auto spec = std::find_if(std::begin(kCommands), std::end(kCommands),
                                 [&](const CommandSpec& s) { return s.op == command.op; });
  if (spec == std::end(kCommands))
    return Fail(std::errc::function_not_supported, fmt::format("unknown command {}", command.op));
  const bool mbz_clean =
      std::all_of(std::begin(command.mbz), std::end(command.mbz), [](uint64_t v) { return v == 0; }) &&
      command.mbz2 == 0 && (command.flags & ~VGPU_CTRL_SEGMENT_PAGES) == 0;
  if (!mbz_clean || (!spec->takes_buffer && command.buffer != 0) ||
      (command.op != VGPU_CTRL_CHANNEL_CREATE && command.client_pid != 0) ||
      (!spec->takes_segments && (command.seg_count != 0 || command.seg_list != 0 || command.flags != 0)))
    return Fail(std::errc::invalid_argument, fmt::format("{}: a field it does not take is not zero", spec->name));
  if (command.channel >= VGPU_MAX_CHANNELS)
    return Fail(std::errc::invalid_argument, fmt::format("{}: no such channel", spec->name));
  return (this->*spec->run)(command);
}

Result<void> ControlPage::ReadSegmentPages(Iova page, std::span<vgpu_segment> out, size_t per_page) const {
  for (;;) {
    const size_t here = std::min(per_page, out.size());
    TRY(dma_.Read(page, std::as_writable_bytes(out.first(here))));
    out = out.subspan(here);
    if (out.empty()) return {};
    vgpu_segment link{};
    TRY(dma_.Read(Iova{Raw(page) + here * sizeof link}, std::as_writable_bytes(std::span{&link, 1})));
    if (link.bytes != 0 || link.addr % kPage != 0)
      return Fail(std::errc::invalid_argument, "the list of segments does not say where it goes on");
    page = Iova{link.addr};
  }
}

Result<Area> ControlPage::ReadSegments(const vgpu_ctrl_cmd& command) const {
  if (command.seg_count == 0 || command.seg_count > VGPU_MAX_SEGMENTS)
    return Fail(std::errc::invalid_argument,
                fmt::format("{} segments, 1 to {} are allowed", command.seg_count, VGPU_MAX_SEGMENTS));
  guard_.Count(GuardedEvent::kCommand, command.seg_count / kSegmentsPerCommand);
  std::vector<vgpu_segment> segments(command.seg_count);
  TRY(ReadSegmentPages(Iova{command.seg_list}, segments,
                       (command.flags & VGPU_CTRL_SEGMENT_PAGES) != 0 ? VGPU_SEGMENTS_PER_PAGE : segments.size()));
  Area area;
  for (const vgpu_segment& segment : segments) {
    if (segment.bytes == 0 || ((segment.addr | segment.bytes) & (kPage - 1)) != 0)
      return Fail(std::errc::invalid_argument,
                  fmt::format("segment {:#x}+{:#x}: not whole pages", segment.addr, segment.bytes));
    if (area.bytes + segment.bytes < area.bytes) return Fail(std::errc::invalid_argument, "segments wrap");
    area.bytes += segment.bytes;
    for (FilePiece& piece : TRY(dma_.Resolve({Iova{segment.addr}, segment.bytes}, true)))
      Append(area.pieces, std::move(piece));
    if (area.pieces.size() > kMaxPiecesPerVf) return Fail(std::errc::not_enough_memory, "too many pieces of memory");
  }
  TRY(CheckWholePages(area));
  return area;
}

Result<void> ControlPage::CheckBudget(uint64_t feature, GuardedEvent event) {
  if ((driver_features_ & feature) == 0 || !guard_.Refuses(event, Now())) return {};
  return Fail(std::errc::device_or_resource_busy,
              fmt::format("more than {} {} a second", guard_.budget(event), kEventNames[static_cast<size_t>(event)]));
}

Result<void> ControlPage::ChannelCreate(const vgpu_ctrl_cmd& command) {
  TRY(CheckBudget(VGPU_FEATURE_BUSY, GuardedEvent::kOpen));
  Area area = TRY(ReadSegments(command));
  if (area.bytes < VGPU_CHANNEL_MIN_BYTES)
    return Fail(std::errc::invalid_argument,
                fmt::format("channel area of {} bytes, {} is the least", area.bytes, VGPU_CHANNEL_MIN_BYTES));
  if (area.pieces[0].bytes < sizeof(vgpu_channel_header))
    return Fail(std::errc::invalid_argument, "channel header in pieces");
  vgpu_channel_header header{};
  TRY(dma_.Read(area.pieces[0].guest.start, std::as_writable_bytes(std::span{&header, 1})));
  if (header.magic != VGPU_MAGIC || header.abi_version < VGPU_ABI_OLDEST || header.abi_version > VGPU_ABI_VERSION)
    return Fail(std::errc::protocol_not_supported,
                fmt::format("channel header says magic {:#x} version {}, this host speaks versions {} to {}",
                            header.magic, header.abi_version, VGPU_ABI_OLDEST, VGPU_ABI_VERSION));
  ChannelRequest request;
  request.owner = this;
  request.guard = &guard_;
  request.area = std::move(area);
  // Older drivers say it where the guest's program reads it too.
  request.client_pid = command.client_pid != 0 ? command.client_pid : header.unused_pid;
  SignalSocket kick = TRY(MakeSignalSocket()), call = TRY(MakeSignalSocket());
  request.kick = std::make_shared<const UniqueFd>(std::move(kick.rings));
  request.kick_ends = std::make_shared<const UniqueFd>(std::move(kick.listens));
  request.call = std::make_shared<const UniqueFd>(std::move(call.rings));
  const uint32_t channel = command.channel;
  TRY(channels_.Open(channel, std::move(request)));
  const int listens = call.listens.get();
  calls_[channel] = {std::move(call.listens), loop_.OnReadable(listens, [this, channel] { OnCall(channel); })};
  buffer_ack_[channel] = 0;
  Write(offsetof(vgpu_ctrl_page, buffer_ack) + channel * sizeof(uint32_t), &buffer_ack_[channel], sizeof(uint32_t));
  SetState(channel, VGPU_CHANNEL_OPEN);
  return {};
}

Result<void> ControlPage::ChannelDestroy(const vgpu_ctrl_cmd& command) {
  TRY(channels_.Close(command.channel, this));
  SetState(command.channel, VGPU_CHANNEL_CLOSING);
  return {};
}

Result<void> ControlPage::BufferAdd(const vgpu_ctrl_cmd& command) {
  TRY(CheckBudget(VGPU_FEATURE_BUSY_BUFFERS, GuardedEvent::kCommand));
  return channels_.AddBuffer(command.channel, this, command.buffer, TRY(ReadSegments(command)));
}

Result<void> ControlPage::BufferRemove(const vgpu_ctrl_cmd& command) {
  return channels_.RemoveBuffer(command.channel, this, command.buffer);
}

Result<void> ControlPage::Status(const vgpu_ctrl_cmd& command) {
  if (command.channel != 0) return Fail(std::errc::invalid_argument, "STATUS takes no channel");
  const vgpu_status status = StatusOf(figures_, channels_, Now());
  Write(VGPU_CTRL_PAGE_STATUS, &status, sizeof status);
  return {};
}

void ControlPage::Reset() {
  channels_.Abandon(this);
  for (Call& call : calls_) {
    if (call.watch == nullptr) continue;
    call.watch->Pause();
    loop_.Post([dead = std::make_shared<Call>(std::exchange(call, {}))] {});
  }
  state_.fill(VGPU_CHANNEL_FREE);
  buffer_ack_.fill(0);
  interrupt_waits_ = false;
  SetAddress(0);
}

void ControlPage::ResetAndTell() {
  for (uint32_t channel = 0; channel < state_.size(); ++channel)
    if (state_[channel] != VGPU_CHANNEL_FREE) SetState(channel, VGPU_CHANNEL_LOST);
  irqs_.Interrupt();
  Reset();
}

void ControlPage::ChannelState(uint32_t channel, uint32_t state) {
  // A call that the executor has signalled before it died may be on its way still; the interrupt below says as much.
  if (state == VGPU_CHANNEL_FREE) {
    loop_.Post([dead = std::make_shared<Call>(std::move(calls_[channel]))] {});
    calls_[channel] = {};
  }
  SetState(channel, state);
  Interrupt();
}

void ControlPage::BufferGone(uint32_t channel, uint32_t) {
  ++buffer_ack_[channel];
  Write(offsetof(vgpu_ctrl_page, buffer_ack) + channel * sizeof(uint32_t), &buffer_ack_[channel], sizeof(uint32_t));
  Interrupt();
}

void ControlPage::SetState(uint32_t channel, uint32_t state) {
  state_[channel] = state;
  Write(offsetof(vgpu_ctrl_page, channel_state) + channel * sizeof(uint32_t), &state_[channel], sizeof(uint32_t));
}

void ControlPage::Write(size_t offset, const void* data, size_t bytes) {
  if (!bus_master_ || address_ == 0 || address_ % kPage != 0) return;
  const auto written = dma_.Write(Iova{address_ + offset}, {static_cast<const std::byte*>(data), bytes});
  if (!written) LOG_LIMITED(limiter_, kWarning, "vf={} control page: {}", figures_.name, written.error().context);
}

void ControlPage::Interrupt() {
  if (interrupt_waits_) return;
  guard_.Count(GuardedEvent::kInterrupt);
  constexpr uint32_t kKind = EventGuard::Bit(GuardedEvent::kInterrupt);
  const Ns wait = guard_.Overdrawn(kKind) ? guard_.Wait(kKind, Now()) : Ns{0};
  if (wait == Ns{0}) return irqs_.Interrupt();
  interrupt_waits_ = true;
  late_interrupt_->Arm(wait);
}

void ControlPage::OnCall(uint32_t channel) {
  const Signals came = TakeSignals(calls_[channel].listens.get());
  // Nobody can ring any more: it would be readable for ever.
  if (came == Signals::kGone) calls_[channel].watch->Pause();
  if (came != Signals::kSome) return;
  ++events_[channel];
  Write(offsetof(vgpu_ctrl_page, events) + channel * sizeof(uint32_t), &events_[channel], sizeof(uint32_t));
  Interrupt();
}

}  // namespace vgpud::vfio
