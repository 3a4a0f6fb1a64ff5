// SPDX-License-Identifier: Apache-2.0
#include "base/jail/file_answers.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <utility>

namespace vgpud {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

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

bool SendAnswer(int watched, uint64_t id, int error, bool go) {
  Response response{};
  response.answer.id = id;
  response.answer.error = -error;
  response.answer.flags = go ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
  return Ioctl(watched, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0;
}

struct FileAnswers::Shared {
  struct Job {
    uint64_t id;
    UniqueFd file;
    int number;
  };
  bool Do(const Job& todo) const {
    seccomp_notif_addfd add{};
    add.id = todo.id;
    add.flags = SECCOMP_ADDFD_FLAG_SETFD;
    add.srcfd = static_cast<uint32_t>(todo.file.get());
    add.newfd = static_cast<uint32_t>(todo.number);
    add.newfd_flags = O_CLOEXEC;
    if (Ioctl(watched->get(), SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0)
      return SendAnswer(watched->get(), todo.id, 0, true);
    (void)SendAnswer(watched->get(), todo.id, errno, false);
    return false;
  }

  WatchFd watched;
  UniqueFd done;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Job> job;
  std::optional<bool> went;
  bool end = false;
};

void* FileAnswers::Main(void* argument) {
  const std::unique_ptr<std::shared_ptr<Shared>> owned{static_cast<std::shared_ptr<Shared>*>(argument)};
  Shared& shared = **owned;
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] { return shared.end || shared.job; });
    if (shared.end) return nullptr;
    const Shared::Job todo = std::move(*std::exchange(shared.job, std::nullopt));
    lock.unlock();
    const bool let_go = shared.Do(todo);
    lock.lock();
    shared.went = let_go;
    SignalEventFd(shared.done.get());
  }
}

Result<std::unique_ptr<FileAnswers>> FileAnswers::Start(WatchFd watched) {
  auto shared = std::make_shared<Shared>();
  shared->watched = std::move(watched);
  shared->done = TRY(MakeEventFd());
  auto owned = std::make_unique<std::shared_ptr<Shared>>(shared);
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_t thread;
  if (::pthread_attr_init(&attributes) != 0) return Fail(std::errc::not_enough_memory, "a thread's attributes");
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int rc = ::pthread_create(&thread, &attributes, &FileAnswers::Main, owned.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (rc != 0) return Fail(static_cast<std::errc>(rc), "a thread that answers a watched process");
  (void)owned.release();
  return std::unique_ptr<FileAnswers>(new FileAnswers(std::move(shared)));
}

FileAnswers::~FileAnswers() {
  const std::lock_guard lock(shared_->mutex);
  shared_->end = true;
  shared_->changed.notify_one();
}

void FileAnswers::Give(uint64_t id, UniqueFd file, int number) {
  const std::lock_guard lock(shared_->mutex);
  shared_->job.emplace(Shared::Job{id, std::move(file), number});
  shared_->changed.notify_one();
}

int FileAnswers::done() const { return shared_->done.get(); }

std::optional<bool> FileAnswers::Took() {
  DrainEventFd(shared_->done.get());
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->went, std::nullopt);
}

}  // namespace vgpud
