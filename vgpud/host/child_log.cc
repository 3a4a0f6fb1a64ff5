// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/child_log.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/detached_thread.h"
#include "base/foreign_fd.h"
#include "base/log.h"
#include "base/token_bucket.h"

namespace vgpud::daemon {
namespace {

constexpr size_t kReadBytes = 8 * 1024;
constexpr size_t kPipeBytes = 64 * 1024;
// A process may have made its pipe larger.
constexpr size_t kMostLastReads = kPipeBytes / kReadBytes;

}  // namespace

// Kept by both threads, so that the reading one can be left behind.
class ChildLog::Reader : public std::enable_shared_from_this<Reader> {
 public:
  Reader(Sink sink, Sharer whose, std::shared_ptr<LogBudget> budget)
      : sink_(std::move(sink)),
        whose_(std::move(whose)),
        budget_(std::move(budget)),
        lines_(kLinesPerSecond, kLinesAtOnce, Now()),
        bytes_(kBytesPerSecond, kBytesPerSecond, Now()) {}

  // Main thread.
  // The thread starts with the first pipe. False: too much waits for it.
  bool Follow(pid_t pid, UniqueFd& pipe) {
    const std::lock_guard lock{mutex_};
    if (orders_.size() >= kMostWaiting || !Start()) return false;
    Give({pid, std::move(pipe)});
    return true;
  }
  void End(pid_t pid) {
    const std::lock_guard lock{mutex_};
    Give({pid, UniqueFd{}});
  }
  bool Settle(Ns limit) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, limit, [this] { return orders_.empty() && !busy_; });
  }
  void Stop() {
    const std::lock_guard lock{mutex_};
    stop_ = true;
    if (wake_) SignalEventFd(wake_.get());
  }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  // A process to follow, or, without a pipe, one that has ended.
  struct Order {
    pid_t pid;
    UniqueFd pipe;
  };
  struct Writer {
    UniqueFd pipe;
    std::string line;  // as far as it has arrived; what is beyond kMaxLogText is thrown away
    bool at_end = false;
    std::string last = {};  // that was passed on
    uint64_t repeats = 0;   // of it, which nobody has been told
    TimePoint told{};
  };

  bool Start() {
    if (wake_) return true;
    auto event = MakeEventFd();
    if (!event) return false;
    wake_ = std::move(*event);
    if (!StartDetachedThread("vgpud-log", [self = shared_from_this()] { self->Run(); })) wake_.Reset();
    return static_cast<bool>(wake_);
  }
  void Give(Order order) {
    orders_.push_back(std::move(order));
    SignalEventFd(wake_.get());
  }

  // The log's thread, from here on.
  void Run() {
    while (TakeOrders()) {
      const Ns pause = bytes_.Wait(Now());
      const std::vector<pid_t> readable = Sleep(pause);
      for (const pid_t pid : readable)
        if (bytes_.Wait(Now()) <= Ns{0}) writers_.at(pid).at_end = !ReadSome(pid, writers_.at(pid));
    }
  }
  // False: it is over.
  bool TakeOrders() {
    std::unique_lock lock{mutex_};
    busy_ = true;
    while (!orders_.empty()) {
      std::vector<Order> orders;
      orders.swap(orders_);
      lock.unlock();
      for (Order& order : orders) order.pipe ? Begin(order) : Finish(order.pid);
      orders.clear();
      lock.lock();
    }
    busy_ = false;
    changed_.notify_all();
    return !stop_;
  }
  void Begin(Order& order) { writers_[order.pid] = Writer{std::move(order.pipe), {}, false}; }
  void Finish(pid_t pid) {
    const auto it = writers_.find(pid);
    if (it == writers_.end()) return;
    for (size_t reads = 0; reads < kMostLastReads; ++reads)
      if (!ReadSome(pid, it->second)) break;
    Emit(pid, it->second);
    TellRepeats(pid, it->second);
    writers_.erase(it);
  }
  // Until there is something to read, an order, or `pause`, during which nothing is read, is over.
  std::vector<pid_t> Sleep(Ns pause) {
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
    std::vector<pid_t> pids;
    for (const auto& [pid, writer] : writers_) {
      if (pause > Ns{0} || writer.at_end) continue;
      fds.push_back({writer.pipe.get(), POLLIN, 0});
      pids.push_back(pid);
    }
    const auto limit_ms = static_cast<int>(pause / std::chrono::milliseconds{1}) + 1;
    ::poll(fds.data(), fds.size(), pause > Ns{0} ? limit_ms : -1);
    if (fds[0].revents != 0) DrainEventFd(wake_.get());
    std::vector<pid_t> readable;
    for (size_t i = 0; i < pids.size(); ++i)
      if (fds[i + 1].revents != 0) readable.push_back(pids[i]);
    return readable;
  }
  // Reads once; false: there is nothing and there will be nothing.
  bool ReadSome(pid_t pid, Writer& writer) {
    std::array<char, kReadBytes> chunk;
    const ssize_t n = ::read(writer.pipe.get(), chunk.data(), chunk.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    bytes_.Take(static_cast<uint32_t>(n), Now());
    Take(pid, writer, {chunk.data(), static_cast<size_t>(n)});
    return true;
  }
  void Take(pid_t pid, Writer& writer, std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      // One more, so that the log says that it was cut.
      const size_t room = kMaxLogText + 1 - writer.line.size();
      writer.line.append(part.substr(0, room));
      if (end == std::string_view::npos) return;
      Emit(pid, writer);
      bytes.remove_prefix(end + 1);
    }
  }
  void Emit(pid_t pid, Writer& writer) {
    std::string line = std::exchange(writer.line, {});
    if (line.empty()) return;
    if (line == writer.last) {
      ++writer.repeats;
      if (Now() - writer.told >= kTellRepeatsEvery) TellRepeats(pid, writer);
      return;
    }
    TellRepeats(pid, writer);
    const bool passed = Pass(pid, line, 1);
    writer.last = passed ? std::move(line) : std::string();
    writer.told = Now();
  }
  void TellRepeats(pid_t pid, Writer& writer) {
    const uint64_t repeats = std::exchange(writer.repeats, 0);
    writer.told = Now();
    if (repeats != 0) (void)Pass(pid, fmt::format("(the same line {} times more)", repeats), repeats);
  }
  // `line`, which stands for so many of the process. False: there is no budget left for it.
  bool Pass(pid_t pid, const std::string& line, uint64_t stands_for) {
    if (!lines_.TryTake(1, Now()) || !budget_->TryTake(whose_, line.size() + kOriginBytes)) {
      dropped_.fetch_add(stands_for, std::memory_order_relaxed);
      return false;
    }
    const uint64_t unsaid = dropped() - std::exchange(said_, dropped());
    sink_(pid, unsaid == 0 ? line : fmt::format("({} lines of this VF dropped) {}", unsaid, line));
    return true;
  }

  const Sink sink_;
  const Sharer whose_;
  const std::shared_ptr<LogBudget> budget_;
  std::atomic<uint64_t> dropped_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  UniqueFd wake_;  // set: the thread runs, or has ended
  std::vector<Order> orders_;
  bool busy_ = false;
  bool stop_ = false;

  TokenBucket lines_;
  TokenBucket bytes_;
  std::map<pid_t, Writer> writers_;
  uint64_t said_ = 0;  // of dropped_
};

bool LogBudget::TryTake(const Sharer& who, size_t bytes) {
  const std::lock_guard lock{mutex_};
  return bytes_.TryTake(who, static_cast<uint32_t>(bytes), Now());
}

ChildLog::ChildLog(Sink sink, Sharer whose, std::shared_ptr<LogBudget> budget)
    : reader_(std::make_shared<Reader>(std::move(sink), std::move(whose), std::move(budget))) {}

ChildLog::~ChildLog() {
  (void)reader_->Settle(kLastWords);
  reader_->Stop();
}

void ChildLog::Follow(pid_t pid, UniqueFd read) {
  if (reader_->Follow(pid, read))
    followed_.insert(pid);
  else
    CloseElsewhere(std::move(read));
}

void ChildLog::Ended(pid_t pid) {
  if (followed_.erase(pid) != 0) reader_->End(pid);
}

uint64_t ChildLog::dropped() const { return reader_->dropped(); }

bool ChildLog::Settle(Ns limit) { return reader_->Settle(limit); }

}  // namespace vgpud::daemon
