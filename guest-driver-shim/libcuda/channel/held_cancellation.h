// SPDX-License-Identifier: Apache-2.0
// A thread that is cancelled (pthread_cancel) while it waits in poll(2) would end there, and leave half a message to
// the host and what it holds behind. While one of these lives it does not; it ends at the next such place after.
#pragma once

#include <pthread.h>

namespace vgpud::cuda {

class HeldCancellation {
 public:
  HeldCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~HeldCancellation() { pthread_setcancelstate(before_, nullptr); }
  HeldCancellation(const HeldCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace vgpud::cuda
