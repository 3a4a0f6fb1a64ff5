// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/observe.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "gpu/channels/rm_abi.h"

namespace vgpud::rm {
namespace {

std::atomic<void (*)()> on_observed = nullptr;
std::atomic<bool> hmm_disabled = false;

}  // namespace

void OnObserved(void (*changed)()) { on_observed = changed; }

bool HmmIsDisabled() { return hmm_disabled; }

// Never destroyed: threads of the driver call until the process has ended.
ObservedObjects& OwnObjects() {
  static auto* const objects = new ObservedObjects;
  return *objects;
}

}  // namespace vgpud::rm

extern "C" int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  auto* const uvm = VGPUD_RM_CONTROLS != 0 && request == vgpud::rm::kUvmInitializeRequest
                        ? static_cast<vgpud::rm::UvmInitialize*>(argument)
                        : nullptr;
  if (uvm != nullptr) uvm->flags |= vgpud::rm::kUvmDisableHmm;
  const int result = static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  if (uvm != nullptr && result == 0 && uvm->status == 0) vgpud::rm::hmm_disabled = true;
  if (result == 0 && VGPUD_RM_CONTROLS != 0 && vgpud::rm::IsEscape(request)) {
    const int error = errno;
    vgpud::rm::OwnObjects().Saw(fd, request, argument);
    if (void (*const changed)() = vgpud::rm::on_observed) changed();
    errno = error;
  }
  return result;
}
