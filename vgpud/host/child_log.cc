#include "vgpud/host/child_log.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/log.h"

namespace vgpud {
namespace {

constexpr size_t kReadBytes = 8 * 1024;
constexpr size_t kPipeBytes = 64 * 1024;
// A process may have made its pipe larger.
constexpr size_t kMostLastReads = kPipeBytes / kReadBytes;

}  // namespace

ChildLog::ChildLog(EventLoop& loop, std::string vf, Sink sink)
    : loop_(loop),
      vf_(std::move(vf)),
      sink_(std::move(sink)),
      lines_(kLinesPerSecond, kLinesAtOnce, Now()),
      bytes_(kBytesPerSecond, kBytesPerSecond, Now()),
      resume_(loop.Timer([this] {
        paused_ = false;
        for (auto& [pid, writer] : writers_) writer.watch->Resume();
      })) {}

ChildLog::~ChildLog() = default;

void ChildLog::Follow(pid_t pid, UniqueFd read) {
  Writer& writer = writers_[pid];
  writer.pipe = std::move(read);
  writer.watch = loop_.OnReadable(writer.pipe.get(), [this, pid] { OnReadable(pid); });
  if (paused_) writer.watch->Pause();
}

void ChildLog::OnReadable(pid_t pid) {
  const auto it = writers_.find(pid);
  if (it == writers_.end()) return;
  // At its end the pipe stays readable until the process is reaped.
  if (!ReadSome(pid, it->second)) it->second.watch->Pause();
}

bool ChildLog::ReadSome(pid_t pid, Writer& writer) {
  std::array<char, kReadBytes> chunk;
  const ssize_t n = ::read(writer.pipe.get(), chunk.data(), chunk.size());
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  const TimePoint now = Now();
  bytes_.Take(static_cast<uint32_t>(n), now);
  Take(pid, writer, {chunk.data(), static_cast<size_t>(n)});
  if (const Ns wait = bytes_.Wait(now); wait > Ns{0}) PauseAll(wait);
  return true;
}

void ChildLog::PauseAll(Ns how_long) {
  if (std::exchange(paused_, true)) return;
  for (auto& [pid, writer] : writers_) writer.watch->Pause();
  resume_->Arm(how_long);
}

void ChildLog::Take(pid_t pid, Writer& writer, std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const size_t room = kMaxLogText + 1 - writer.line.size();  // one more, so that the log says that it was cut
    writer.line.append(part.substr(0, room));
    if (end == std::string_view::npos) return;
    Emit(pid, writer);
    bytes.remove_prefix(end + 1);
  }
}

void ChildLog::Emit(pid_t pid, Writer& writer) {
  const std::string line = std::exchange(writer.line, {});
  if (line.empty()) return;
  if (!lines_.TryTake(1, Now())) {
    ++dropped_;
    return;
  }
  const uint64_t unsaid = dropped_ - std::exchange(said_, dropped_);
  sink_(fmt::format("vf={} pid={}", vf_, pid),
        unsaid == 0 ? line : fmt::format("({} lines of this VF dropped) {}", unsaid, line));
}

void ChildLog::Ended(pid_t pid) {
  const auto it = writers_.find(pid);
  if (it == writers_.end()) return;
  for (size_t reads = 0; reads < kMostLastReads; ++reads)
    if (!ReadSome(pid, it->second)) break;
  Emit(pid, it->second);
  // Perhaps inside a callback of the loop: not of this watch, but in the same turn.
  loop_.Post([watch = std::shared_ptr<EventLoop::Watch>(std::move(it->second.watch))] {});
  writers_.erase(it);
}

}  // namespace vgpud
