// SPDX-License-Identifier: Apache-2.0
#include "base/detached_thread.h"

#include <pthread.h>

#include <csignal>
#include <memory>
#include <utility>

namespace vgpud {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

struct Start {
  const char* name;
  std::function<void()> main;
};

void* Run(void* argument) {
  const std::unique_ptr<Start> start{static_cast<Start*>(argument)};
  ::pthread_setname_np(::pthread_self(), start->name);
  start->main();
  return nullptr;
}

}  // namespace

bool StartDetachedThread(const char* name, std::function<void()> main) {
  auto start = std::make_unique<Start>(Start{name, std::move(main)});
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_t thread;
  if (::pthread_attr_init(&attributes) != 0) return false;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int rc = ::pthread_create(&thread, &attributes, &Run, start.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (rc == 0) (void)start.release();
  return rc == 0;
}

}  // namespace vgpud
