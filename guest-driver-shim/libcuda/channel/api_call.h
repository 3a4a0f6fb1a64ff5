// SPDX-License-Identifier: Apache-2.0
// How a call of the program comes into the library and leaves it, whatever happens in between: it returns, there is no
// memory, its thread is cancelled, or a function of the program that it calls does not come back.
#pragma once

#include <pthread.h>

#include <new>

#include "base/locks/mutex.h"
#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace vgpud::cuda {

// What operator new of this library throws (operators.cc), and nobody else: what the program throws passes.
class NoMemory : public std::bad_alloc {};

// A call, on its stack. While it lasts its thread can't be cancelled (pthread_cancel): it would leave half a message to
// the host behind. It ends at the next cancellation point of its own.
class ApiCall {
 public:
  ApiCall() : outer_(innermost_) {
    innermost_ = this;
    if (outer_ != nullptr) {
      cancel_state_ = outer_->cancel_state_;
    } else {
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    }
  }
  ~ApiCall() {
    innermost_ = outer_;
    if (outer_ == nullptr) pthread_setcancelstate(cancel_state_, nullptr);
  }
  ApiCall(const ApiCall&) = delete;

  // While one of these lives, a function of the program is called. Then the thread is as it came: the function may end
  // it, throw, or leave by longjmp, after which nothing of ours runs. Whoever makes one holds nothing that must be
  // given back.
  class Outside {
   public:
    Outside() : call_(innermost_) {
      lock_check::BeforeCallingTheProgram();
      if (call_ == nullptr) return;  // a thread of the library
      innermost_ = nullptr;
      pthread_setcancelstate(call_->cancel_state_, nullptr);
    }
    ~Outside() {
      if (call_ == nullptr) return;
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
      innermost_ = call_;
    }
    Outside(const Outside&) = delete;

   private:
    ApiCall* const call_;
  };

 private:
  inline static thread_local ApiCall* innermost_ = nullptr;
  ApiCall* const outer_;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

template <class Body>
CUresult Enter(const Body& body) {
  const ApiCall call;
  try {
    const CUresult result = body();
    lock_check::BeforeReturning();
    return result;
  } catch (const NoMemory&) {
    lock_check::BeforeReturning();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace vgpud::cuda
