// SPDX-License-Identifier: Apache-2.0
#include "base/jail/refusals.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>

#include "base/jail/file_answers.h"
#include "base/jail/rules.h"
#include "base/jail/syscall_watch.h"

namespace vgpud {

void Refusals::Answer() {
  union {
    seccomp_notif call;
    char room[512];
  } waits{};
  // ENOENT: its thread is gone already.
  if (::ioctl(watched_.get(), SECCOMP_IOCTL_NOTIF_RECV, &waits) != 0) return;
  SyscallWatch::Call call;
  call.number = waits.call.data.nr;
  names_.insert(call.Name());
  (void)SendAnswer(watched_.get(), waits.call.id, ErrorOtherwise(JailKind::kExecDriver), false);
}

}  // namespace vgpud
