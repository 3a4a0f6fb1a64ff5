// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a call runs in the caller's own thread, and that do not come back; and threads that are
// cancelled before a call, which ends all the same.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "tests/integration/shim_calls/own_process.h"
#include "tests/integration/shim_calls/wire.h"

namespace {

struct Thrown {};
std::jmp_buf back;

bool CanBeCancelled() {
  int before = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  return before == PTHREAD_CANCEL_ENABLE;
}

class Callbacks : public ShimWire {
 public:
  using ShimWire::context_;
  CUresult BestBlock(size_t (*shared_of)(int)) {
    int grid = 0, block = 0;
    return cuOccupancyMaxPotentialBlockSize(&grid, &block, add_, shared_of, 0, 0);
  }

 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&add_, module_, "vectoradd"));
  }
  void JumpsOut();
  void Works() {
    EXPECT_TRUE(CanBeCancelled());
    std::thread([this] {  // a lock that is held would keep another thread out
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      EXPECT_EQ(CUDA_SUCCESS, BestBlock(nullptr));
      CUmodule module = nullptr;
      EXPECT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
      EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    })
        .join();
  }
  // `call` in a thread that has been cancelled already: it returns, then the thread ends.
  static void CancelledBefore(const char* name, const std::function<void()>& call) {
    struct Argument {
      const std::function<void()>* call;
      std::atomic<bool> returned{false};
    } argument{&call};
    pthread_t thread;
    ASSERT_EQ(0, pthread_create(
                     &thread, nullptr,
                     [](void* data) -> void* {
                       auto* const mine = static_cast<Argument*>(data);
                       pthread_cancel(pthread_self());
                       (*mine->call)();
                       mine->returned = true;
                       pthread_testcancel();
                       return nullptr;
                     },
                     &argument));
    void* ended = nullptr;
    ASSERT_EQ(0, pthread_join(thread, &ended));
    EXPECT_TRUE(argument.returned) << name;
    EXPECT_EQ(PTHREAD_CANCELED, ended) << name;
  }
  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr;
};

TEST_F(Callbacks, AnExceptionPasses) {
  EXPECT_THROW(BestBlock([](int) -> size_t { throw Thrown(); }), Thrown);
  Works();
  EXPECT_THROW(BestBlock([](int) -> size_t { throw std::bad_alloc(); }), std::bad_alloc) << "it is not ours";
  Works();
}

// A function of its own: what is a variable in it after the jump may be lost (setjmp(3)).
void Callbacks::JumpsOut() {
  if (setjmp(back) != 0) return;
  BestBlock([](int) -> size_t { std::longjmp(back, 1); });
  FAIL() << "it came back";
}

TEST_F(Callbacks, ALongjmpPasses) {
  for (int round = 0; round < 3; ++round) {
    JumpsOut();
    Works();
  }
}

TEST_F(Callbacks, TheyMayCallTheDriverAndEndTheirThread) {
  EXPECT_EQ(CUDA_SUCCESS, BestBlock([](int) -> size_t {
              EXPECT_TRUE(CanBeCancelled());
              EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
              EXPECT_TRUE(CanBeCancelled());
              return 0;
            }));
  std::thread([this] {
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
    pthread_t thread;
    ASSERT_EQ(0, pthread_create(
                     &thread, nullptr,
                     [](void* data) -> void* {
                       auto* const self = static_cast<Callbacks*>(data);
                       cuCtxSetCurrent(self->context_);
                       self->BestBlock([](int) -> size_t { pthread_exit(&back); });
                       return nullptr;
                     },
                     this));
    void* ended = nullptr;
    ASSERT_EQ(0, pthread_join(thread, &ended));
    EXPECT_EQ(&back, ended);
  }).join();
  Works();
}

TEST_F(Callbacks, WhatAStreamCallbackThrowsMeetsTheProgramsOwnHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kMet = 42;
  const auto run = [] {
    std::set_terminate([] { _exit(std::current_exception() != nullptr ? kMet : kMet + 1); });
    cuStreamAddCallback(
        nullptr, [](CUstream, int, void*) { throw Thrown(); }, nullptr, 0);
    cuStreamSynchronize(nullptr);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kMet), "");
}

TEST_F(Callbacks, ACallEndsInAThreadThatHasBeenCancelled) {
  char path[] = "/tmp/shim_image_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(static_cast<ssize_t>(sizeof kPtx), write(fd, kPtx, sizeof kPtx));
  close(fd);
  CancelledBefore("reading a file", [&] {
    cuCtxSetCurrent(context_);
    CUmodule module = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuModuleLoad(&module, path));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
    CUlibrary library = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
  });
  CancelledBefore("a linker's file", [&] {
    cuCtxSetCurrent(context_);
    CUlinkState linker = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuLinkCreate_v2(0, nullptr, nullptr, &linker));
    EXPECT_EQ(CUDA_SUCCESS, cuLinkAddFile_v2(linker, CU_JIT_INPUT_PTX, path, 0, nullptr, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuLinkDestroy(linker));
  });
  unlink(path);
  CancelledBefore("memory", [&] {
    cuCtxSetCurrent(context_);
    void* host = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 4096, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
  });
  CancelledBefore("a host function", [&] {
    cuCtxSetCurrent(context_);
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                                nullptr, [](void*) {}, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  });
  Works();
}

// The child: its first thread is cancelled before cuInit.
TEST(ShimChild, StartsInAThreadThatHasBeenCancelled) {
  if (getenv("SHIM_CHILD") == nullptr) GTEST_SKIP() << "the other test runs it";
  static CUresult result = CUDA_ERROR_UNKNOWN;
  pthread_t thread;
  ASSERT_EQ(0, pthread_create(
                   &thread, nullptr,
                   [](void*) -> void* {
                     pthread_cancel(pthread_self());
                     result = cuInit(0);
                     pthread_testcancel();
                     return nullptr;
                   },
                   nullptr));
  void* ended = nullptr;
  ASSERT_EQ(0, pthread_join(thread, &ended));
  EXPECT_EQ(PTHREAD_CANCELED, ended);
  EXPECT_EQ(CUDA_SUCCESS, result);
  int count = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetCount(&count));
  EXPECT_EQ(1, count);
}

class CancelledStart : public OwnProcess {};

TEST_F(CancelledStart, CuInitEnds) {
  EXPECT_TRUE(Passes("ShimChild.StartsInAThreadThatHasBeenCancelled", {"SHIM_CHILD=1", "VGPU_CHANNEL=" + path_}));
}

}  // namespace
