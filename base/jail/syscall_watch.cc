// SPDX-License-Identifier: Apache-2.0
#include "base/jail/syscall_watch.h"

#include <fmt/core.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace vgpud {
namespace {

// The kernel writes as many bytes as its own version of the structure has, and wants them zero before.
union Notification {
  seccomp_notif call;
  char room[512];
};

}  // namespace

std::string SyscallWatch::Call::Name() const {
  const std::unique_ptr<char, void (*)(void*)> name{seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number),
                                                    &std::free};
  return name != nullptr ? name.get() : fmt::format("system call {}", number);
}

SyscallWatch::SyscallWatch(EventLoop& loop, UniqueFd watched, Judge judge, Undelivered undelivered)
    : loop_(loop),
      watched_(std::make_shared<const UniqueFd>(std::move(watched))),
      judge_(std::move(judge)),
      undelivered_(std::move(undelivered)),
      readable_(loop.OnReadable(watched_->get(), [this] { OnCall(); })) {}

void SyscallWatch::OnCall() {
  pollfd state{watched_->get(), POLLIN, 0};
  if (::poll(&state, 1, 0) != 1) return;  // taken back meanwhile
  // Hung up, once the last process in the jail is gone, it stays "readable".
  if ((state.revents & POLLIN) == 0) return readable_->Pause();
  Notification notification{};
  // ENOENT: the thread is gone already.
  if (::ioctl(watched_->get(), SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) return;
  Call call;
  call.number = notification.call.data.nr;
  std::copy(std::begin(notification.call.data.args), std::end(notification.call.data.args), call.arguments);
  if (!Answer(notification.call.id, judge_(call))) undelivered_();
}

bool SyscallWatch::Answer(uint64_t id, const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::kLeave) return true;
  const bool go = verdict.kind == Verdict::Kind::kGo;
  if (!go || verdict.file < 0) return SendAnswer(watched_->get(), id, go ? 0 : verdict.error, go);
  if (const auto given = GiveFile(id, verdict); !given) {
    (void)SendAnswer(watched_->get(), id, static_cast<int>(given.error().code), false);
    return false;
  }
  return true;
}

Result<void> SyscallWatch::GiveFile(uint64_t id, const Verdict& verdict) {
  if (files_ == nullptr) {
    files_ = TRY(FileAnswers::Start(watched_));
    given_ = loop_.OnReadable(files_->done(), [this] { OnGiven(); });
  }
  files_->Give(id, TRY(Dup(verdict.file)), verdict.number);
  // A call that comes next would be judged before it is known whether this one goes on.
  readable_->Pause();
  return {};
}

void SyscallWatch::OnGiven() {
  const auto went = files_->Took();
  if (!went) return;
  if (!*went) undelivered_();
  readable_->Resume();
}

}  // namespace vgpud
