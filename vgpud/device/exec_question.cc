// SPDX-License-Identifier: Apache-2.0
#include "vgpud/device/exec_question.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/exec_link.h"
#include "base/message.h"

namespace vgpud::daemon {
namespace {

constexpr size_t kMostText = 64 << 10;
constexpr Ns kStartLimit = std::chrono::seconds{60};

// The last line, without who says it.
std::string LastWords(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const size_t begin = text.rfind('\n', end);
  const std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
  const size_t said = line.find("error: ");
  return said == std::string::npos ? line : line.substr(said + 7);
}

// False: nothing by then.
bool AwaitReadable(int fd, TimePoint end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Now()).count();
    pollfd readable{fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready > 0) return true;
    if (left <= 0) return false;
  }
}

}  // namespace

Result<ExecQuestion> ExecQuestion::Ask(const GpuChoice& choice, const ExecStart& start,
                                       std::vector<std::string> arguments) {
  const UniqueFd channel = TRY(choice.ConnectChannel());
  Pipe answer = TRY(MakePipe());
  SocketPair hand_over = TRY(MakeSeqpacketPair());
  Child::Spec spec;
  spec.program = start.program;
  spec.arguments = {"vgpud-exec", "--vf", "trial"};
  for (auto& argument : arguments) spec.arguments.push_back(std::move(argument));
  for (auto& argument : start.confinement.ArgumentsFor(VfId{0})) spec.arguments.push_back(std::move(argument));
  spec.confinement = start.confinement.kind;
  spec.user = start.confinement.UserOf(VfId{0});
  for (auto& argument : choice.ExecutorArguments(exec_link::kNestedChannelFd)) spec.arguments.push_back(argument);
  spec.files = {{answer.write.get(), STDERR_FILENO}, {hand_over.b.get(), exec_link::kRefusalsFd}};
  if (channel) spec.files.push_back({channel.get(), exec_link::kNestedChannelFd});
  return ExecQuestion(TRY(Child::Spawn(spec)), std::move(answer.read), std::move(hand_over.a));
}

bool ExecQuestion::AwaitWords(TimePoint end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Now()).count();
    pollfd files[] = {
        {answer_.get(), POLLIN, 0}, {handed_.get(), POLLIN, 0}, {refusals_ ? refusals_->fd() : -1, POLLIN, 0}};
    (void)::poll(files, std::size(files), static_cast<int>(std::max<int64_t>(left, 0)));
    if ((files[2].revents & POLLIN) != 0) refusals_->Answer();
    if (files[1].revents != 0) {
      auto message = ReceiveMessage(handed_.get());
      if (message && message->fds.size() == 1) refusals_.emplace(message->fds.front().Trust());
      handed_.Reset();
    }
    if (files[0].revents != 0) return true;
    if (left <= 0) return false;
  }
}

std::string ExecQuestion::refused() const {
  std::string all;
  if (refusals_)
    for (const std::string& name : refusals_->names()) all += (all.empty() ? "" : ", ") + name;
  return all;
}

Result<void> ExecQuestion::AwaitReady() {
  auto ready = AwaitLine("ready", kStartLimit);
  if (!ready && ready.error().code == std::errc::timed_out)
    return Fail(std::errc::timed_out, "the CUDA driver did not start within a minute; see the kernel's log (dmesg)");
  return ready;
}

Result<bool> ExecQuestion::Read(TimePoint end) {
  if (!AwaitWords(end)) {
    child_.Kill(SIGKILL);
    return Fail(std::errc::timed_out, "there was no answer");
  }
  std::array<char, 4096> piece;
  const ssize_t n = ::read(answer_.get(), piece.data(), piece.size());
  if (n > 0) text_.append(piece.data(), std::min(static_cast<size_t>(n), kMostText - text_.size()));
  return n > 0 || (n < 0 && errno == EINTR);
}

bool ExecQuestion::Ended(TimePoint end, bool* clean) {
  if (!AwaitReadable(child_.pidfd(), end)) return false;
  const auto ending = child_.Reap();
  *clean = ending && ending->clean;
  return true;
}

Result<std::string> ExecQuestion::Await(Ns limit) {
  const TimePoint end = Now() + limit;
  while (TRY(Read(end))) {
  }
  bool clean = false;
  if (Ended(end, &clean) && clean) return text_;
  return Fail(std::errc::no_such_device, LastWords(text_));
}

Result<void> ExecQuestion::AwaitLine(const std::string& line, Ns limit) {
  const TimePoint end = Now() + limit;
  while (("\n" + text_).find("\n" + line + "\n") == std::string::npos)
    if (!TRY(Read(end))) return Fail(std::errc::no_such_device, LastWords(text_));
  return {};
}

Result<std::string> ExecQuestion::LineThatBegins(const std::string& word, Ns limit) {
  const TimePoint end = Now() + limit;
  for (;;) {
    const std::string text = "\n" + text_;
    const size_t begin = text.find("\n" + word + " ");
    const size_t newline = begin == std::string::npos ? begin : text.find('\n', begin + 1);
    if (newline != std::string::npos) return text.substr(begin + 1, newline - begin - 1);
    if (!TRY(Read(end))) return Fail(std::errc::no_such_device, LastWords(text_));
  }
}

Result<Ns> ExecQuestion::Kill(Ns limit) {
  const TimePoint begun = Now();
  child_.Kill(SIGKILL);
  bool clean = false;
  if (!Ended(begun + limit, &clean)) return Fail(std::errc::timed_out, "its process did not end");
  if (clean) return Fail(std::errc::no_such_device, LastWords(text_));
  return Now() - begun;
}

}  // namespace vgpud::daemon
