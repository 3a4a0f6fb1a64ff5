#include "base/syscall_watch.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
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
union Response {
  seccomp_notif_resp answer;
  char room[512];
};

// A signal of this process, say the end of a bounded write's time, does not end an answer: what was interrupted has not
// been done.
int Ioctl(int fd, unsigned long request, void* argument) {
  int result = 0;
  do result = ::ioctl(fd, request, argument);
  while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

std::string SyscallWatch::Call::Name() const {
  const std::unique_ptr<char, void (*)(void*)> name{seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number),
                                                    &std::free};
  return name != nullptr ? name.get() : fmt::format("system call {}", number);
}

SyscallWatch::SyscallWatch(EventLoop& loop, UniqueFd watched, Judge judge, Undo undo)
    : watched_(std::move(watched)),
      judge_(std::move(judge)),
      undo_(std::move(undo)),
      readable_(loop.OnReadable(watched_.get(), [this] { OnCall(); })) {}

void SyscallWatch::OnCall() {
  // Hung up, once the last process in the jail is gone, it stays "readable".
  pollfd state{watched_.get(), POLLIN, 0};
  if (::poll(&state, 1, 0) != 1 || (state.revents & POLLIN) == 0) return readable_->Pause();
  Notification notification{};
  // ENOENT: the thread is gone already.
  if (::ioctl(watched_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) return;
  Call call;
  call.number = notification.call.data.nr;
  std::copy(std::begin(notification.call.data.args), std::end(notification.call.data.args), call.arguments);
  if (!Answer(notification.call.id, judge_(call))) undo_();
}

bool SyscallWatch::Answer(uint64_t id, const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::kLeave) return true;
  Response response{};
  response.answer.id = id;
  response.answer.error = -verdict.error;
  if (verdict.kind == Verdict::Kind::kGo) {
    response.answer.error = 0;
    response.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    seccomp_notif_addfd add{};
    add.id = id;
    add.flags = SECCOMP_ADDFD_FLAG_SETFD;
    add.srcfd = static_cast<uint32_t>(verdict.file);
    add.newfd = static_cast<uint32_t>(verdict.number);
    add.newfd_flags = O_CLOEXEC;
    if (verdict.file >= 0 && Ioctl(watched_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0) {
      response.answer.flags = 0;
      response.answer.error = -errno;
    }
  }
  return Ioctl(watched_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response) == 0;
}

}  // namespace vgpud
