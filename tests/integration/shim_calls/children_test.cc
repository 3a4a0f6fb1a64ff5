// SPDX-License-Identifier: Apache-2.0
// Children of programs, however they were made, and programs that close what is not theirs: they get errors.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <initializer_list>

#include "tests/integration/shim_calls/own_process.h"
#include "tests/integration/shim_fixture.h"

namespace {

// What fork(2) does when nobody is told of it: no handlers run.
pid_t PlainFork() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }

// The status with which `body` ends a child.
int InChild(pid_t (*make)(), const std::function<int()>& body) {
  const pid_t child = make();
  if (child == 0) _exit(body());
  int status = -1;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  return status;
}

TEST_F(ShimApi, ChildrenAreToldThatTheyHaveNoDevice) {
  const CUdeviceptr memory = Alloc(100);
  const CUcontext context = context_;
  for (pid_t (*const make)() : std::initializer_list<pid_t (*)()>{fork, PlainFork}) {
    const std::function<CUresult()> calls[] = {
        [] { return cuInit(0); },
        [] {
          int count;
          return cuDeviceGetCount(&count);
        },
        [] {
          CUdeviceptr address;
          return cuMemAlloc_v2(&address, 100);
        },
        [] {
          CUcontext made;
          return cuCtxCreate_v2(&made, 0, 0);
        },
        [&] { return cuMemFree_v2(memory); },
        [&] { return cuMemsetD8_v2(memory, 1, 100); },
        [&] { return cuCtxDestroy_v2(context); },
        [] { return cuCtxSynchronize(); },
        [] {
          size_t bytes;
          return cuMemGetInfo_v2(&bytes, nullptr);
        },
    };
    for (const auto& call : calls)
      EXPECT_EQ(0, InChild(make, [&] { return call() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1; })) << &call - calls;
  }
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(memory, 1, 100)) << "nothing of it harms the parent";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory));
}

// Sockets of that type among this process' descriptors.
int SequencedSockets() {
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    int type = 0;
    socklen_t bytes = sizeof type;
    found += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_SEQPACKET;
  }
  return found;
}

// Else the executor would stay, with its memory and its kernels, until the last child has ended.
TEST_F(ShimApi, ChildrenDoNotKeepTheChannelOpen) {
  const int had = SequencedSockets();
  EXPECT_EQ(0, InChild(fork, [had] { return had - SequencedSockets() == 3 ? 0 : 1; }));
  EXPECT_EQ(0, InChild(PlainFork, [had] {
              cuCtxSynchronize();  // the first call finds out
              return had - SequencedSockets() == 3 ? 0 : 1;
            }));
  EXPECT_EQ(had, SequencedSockets());
}

class ShimOwner : public OwnProcess {};

enum class Then { kNothing, kOpensOthers };

// In a process of its own: all descriptors are closed, and perhaps something else is opened under their numbers.
void CloseEverything(Then then) {
  if (getenv("SHIM_CHILD") == nullptr) GTEST_SKIP() << "another test runs it";
  CUcontext context;
  CUdeviceptr memory = 0, more = 0;
  void* pinned = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAlloc_v2(&memory, 100));
  int ends[2] = {-1, -1};
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  if (then == Then::kOpensOthers) {
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends));
    for (int fd = 5; fd < 64; ++fd) ASSERT_EQ(fd, dup(ends[0]));
  }
  // An executor that is just looking into the ring needs no descriptor to be told.
  CUresult found = CUDA_SUCCESS;
  for (int times = 0; times < 100'000 && found == CUDA_SUCCESS; ++times) {
    cuMemsetD8_v2(memory, 1, 100);
    found = cuCtxSynchronize();
  }
  EXPECT_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, found);
  EXPECT_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemAlloc_v2(&more, 100));
  EXPECT_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemHostAlloc(&pinned, 100, 0));
  if (then == Then::kNothing) return;
  char byte;
  EXPECT_EQ(-1, recv(ends[1], &byte, 1, MSG_DONTWAIT)) << "nothing was sent to a stranger";
}
TEST(ShimChild, ClosesAllDescriptors) { CloseEverything(Then::kNothing); }
TEST(ShimChild, OpensOthersInTheirPlace) { CloseEverything(Then::kOpensOthers); }

TEST_F(ShimOwner, OfClosedDescriptorsGetsAnError) {
  for (const char* test : {"ShimChild.ClosesAllDescriptors", "ShimChild.OpensOthersInTheirPlace"})
    EXPECT_TRUE(Passes(test, {"SHIM_CHILD=1", "VGPU_CHANNEL=" + path_})) << test;
}

}  // namespace
