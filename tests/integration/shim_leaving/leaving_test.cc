// SPDX-License-Identifier: Apache-2.0
// Calls that are left in other ways than by returning: threads that are cancelled in them, functions of the program
// that throw or end their thread.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <thread>

#include "base/sanitizer.h"
#include "tests/integration/shim_fixture.h"

namespace {

class Leaving : public ShimApi {
 protected:
  // The driver is whole: somebody else can use all of it.
  void Works() {
    CUstream stream;
    CUevent event;
    std::atomic<bool> called{false};
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                                stream, [](void* data) { *static_cast<std::atomic<bool>*>(data) = true; }, &called));
    ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream));
    ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
    EXPECT_TRUE(called);
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(Alloc(64)));
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  }
};

TEST_F(Leaving, AThreadThatIsCancelledWhileItWaitsEndsAfterTheCall) {
  struct Waiter {
    CUcontext context;
    CUstream stream = nullptr;
    std::atomic<bool> begun{false}, over{false};
  } waiter{context_};
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&waiter.stream, CU_STREAM_NON_BLOCKING));
  const auto wait = [](void* data) -> void* {
    auto* const self = static_cast<Waiter*>(data);
    cuCtxSetCurrent(self->context);
    self->begun = true;
    self->over = cuStreamSynchronize(self->stream) == CUDA_SUCCESS;
    for (;;) pthread_testcancel();
  };
  void* ended = nullptr;
  {
    StreamHold hold;
    pthread_t thread;
    hold.Put(waiter.stream);
    ASSERT_EQ(0, pthread_create(&thread, nullptr, wait, &waiter));
    while (!waiter.begun) std::this_thread::yield();
    EXPECT_EQ(0, pthread_cancel(thread));
    hold.LetGo();
    ASSERT_EQ(0, pthread_join(thread, &ended));
  }
  EXPECT_EQ(PTHREAD_CANCELED, ended);
  EXPECT_TRUE(waiter.over) << "the call came to its end";
  Works();
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(waiter.stream));
}

TEST_F(Leaving, ThreadsThatAreCancelledAnywhereLeaveNothingLocked) {
  if (vgpud::kSanitizerBuild) GTEST_SKIP() << "AddressSanitizer takes what a cancelled thread has left for its stack";
  for (int round = 0; round < 20; ++round) {
    std::atomic<unsigned> calls{0};
    pthread_t thread;
    struct Argument {
      std::atomic<unsigned>* calls;
      CUcontext context;
    } argument{&calls, context_};
    ASSERT_EQ(0, pthread_create(
                     &thread, nullptr,
                     [](void* data) -> void* {
                       const auto [count, context] = *static_cast<Argument*>(data);
                       cuCtxSetCurrent(context);
                       for (;; ++*count) {
                         CUdeviceptr memory = 0;
                         if (cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS) cuMemFree_v2(memory);
                         pthread_testcancel();
                       }
                     },
                     &argument));
    while (calls < 5) std::this_thread::yield();
    ASSERT_EQ(0, pthread_cancel(thread));
    void* ended = nullptr;
    ASSERT_EQ(0, pthread_join(thread, &ended));
    EXPECT_EQ(PTHREAD_CANCELED, ended);
    Works();
  }
}

TEST_F(Leaving, AHostFunctionThatEndsItsThreadIsOver) {
  CUstream stream;
  std::atomic<unsigned> called{0};
  const auto add = [](void* data) { ++*static_cast<std::atomic<unsigned>*>(data); };
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned i = 1; i <= 50; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                                stream, [](void*) { pthread_exit(nullptr); }, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream, add, &called));
    if (i % 10 == 0) {
      ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
      EXPECT_EQ(i, called);
    }
  }
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  Works();
}

struct Thrown {};

// As with a driver that is written in C: nobody below the function could catch it.
TEST_F(Leaving, WhatAHostFunctionThrowsMeetsTheProgramsOwnHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kMet = 42;
  const auto run = [] {
    std::set_terminate([] { _exit(std::current_exception() != nullptr ? kMet : kMet + 1); });
    cuLaunchHostFunc(
        nullptr, [](void*) { throw Thrown(); }, nullptr);
    cuStreamSynchronize(nullptr);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kMet), "");
}

}  // namespace
