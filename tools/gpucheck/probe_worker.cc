// SPDX-License-Identifier: Apache-2.0
#include "tools/gpucheck/probe_worker.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "gpu/channels/observe.h"
#include "tools/gpucheck/driver.h"
#include "tools/gpucheck/kernels.h"

namespace gpucheck {
namespace {

constexpr unsigned kThreads = 256, kBlocksEach = 8;
constexpr size_t kCopyBytes = size_t{256} << 20, kCopies = 16;

WorkerBoard* own_board = nullptr;

void Nap() { usleep(200); }

void Publish() {
  const std::vector<vgpud::rm::Object> all = vgpud::rm::OwnObjects().all();
  own_board->changes.fetch_add(1);
  const uint32_t count = static_cast<uint32_t>(std::min(all.size(), std::size(own_board->seen)));
  std::copy_n(all.begin(), count, own_board->seen);
  own_board->objects = count;
  own_board->changes.fetch_add(1);
}

class Work {
 public:
  explicit Work(WorkerBoard& board) : board_(board), gpu_(OpenGpu()) {
    blocks_ = static_cast<unsigned>(gpu_.multiprocessors) * kBlocksEach;
    kernel_ = LoadKernel(kWork, "beats");
    empty_ = LoadKernel(kWork, "empty");
    CUDA(StreamCreate(&stream_, driver::kStreamNonBlocking));
    // The page is the driver's own, and what the prober sees is a copy that this process keeps up to date: not every
    // driver can give a kernel memory that another process has mapped, too.
    void* page = nullptr;
    CUDA(MemHostAlloc(&page, 4096, driver::kHostAllocMapped));
    CUDA(MemHostGetDevicePointer(&mapped_, page, 0));
    page_ = static_cast<uint64_t*>(page);
    CUDA(MemAlloc(&states_, size_t{blocks_} * kThreads * 4));
    Start(1);
    CUDA(StreamSynchronize(stream_));
  }

  void Do(Task task) {
    board_.state = State::kRuns;
    if (task == Task::kRun) Beat();
    if (task == Task::kCopy) Copy();
    if (task == Task::kLaunchLatency) LaunchLatency();
    board_.task = Task::kNone;
    board_.state = State::kDone;
  }

 private:
  void Start(uint32_t rounds) {
    std::vector<uint32_t> seeds(size_t{blocks_} * kThreads);
    for (size_t n = 0; n < seeds.size(); ++n) seeds[n] = static_cast<uint32_t>(n * 2654435761u + 1);
    CUDA(MemcpyHtoD(states_, seeds.data(), seeds.size() * 4));
    page_[0] = 0;
    page_[1] = 0;
    void* params[] = {&states_, &mapped_, &rounds};
    CUDA(LaunchKernel(kernel_, blocks_, 1, 1, kThreads, 1, 1, 0, stream_, params, nullptr));
  }
  void Beat() {
    Start(board_.rounds);
    for (;;) {
      const driver::Status now = Cuda().StreamQuery(stream_);
      __atomic_store_n(&board_.page[1], __atomic_load_n(&page_[1], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
      ++board_.looks;
      if (now != driver::kNotReady) {
        Check(now, "StreamQuery(");
        break;
      }
      if (board_.task != Task::kRun) __atomic_store_n(&page_[0], 1, __ATOMIC_RELAXED);
    }
    std::vector<uint32_t> states(size_t{blocks_} * kThreads);
    CUDA(MemcpyDtoH(states.data(), states_, states.size() * 4));
    uint64_t digest = 14695981039346656037ull;
    for (const uint32_t state : states) digest = (digest ^ state) * 1099511628211ull;
    board_.result = digest;
  }
  void Copy() {
    const size_t bytes = std::min(kCopyBytes, gpu_.memory / 8);
    driver::DevicePtr device = 0;
    void* host = nullptr;
    CUDA(MemAlloc(&device, bytes));
    CUDA(MemHostAlloc(&host, bytes, 0));
    const double begun = Seconds();
    for (size_t n = 0; n < kCopies; ++n) CUDA(MemcpyHtoDAsync(device, host, bytes, stream_));
    CUDA(StreamSynchronize(stream_));
    board_.result = static_cast<uint64_t>(static_cast<double>(kCopies * bytes) / (Seconds() - begun));
    CUDA(MemFree(device));
  }
  void LaunchLatency() {
    double worst = 0;
    for (int n = 0; n < 50; ++n) {
      const double begun = Seconds();
      CUDA(LaunchKernel(empty_, 1, 1, 1, 32, 1, 1, 0, stream_, nullptr, nullptr));
      CUDA(StreamSynchronize(stream_));
      worst = std::max(worst, Seconds() - begun);
    }
    board_.result = static_cast<uint64_t>(worst * 1e9);
  }

  WorkerBoard& board_;
  const Gpu gpu_;
  unsigned blocks_ = 0;
  driver::Function kernel_ = nullptr, empty_ = nullptr;
  driver::Stream stream_ = nullptr;
  uint64_t* page_ = nullptr;
  driver::DevicePtr mapped_ = 0, states_ = 0;
};

[[noreturn]] void Serve(WorkerBoard& board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  own_board = &board;
  vgpud::rm::OnObserved(Publish);
  Work work(board);
  board.state = State::kReady;
  for (;;) {
    const Task task = board.task;
    if (task == Task::kNone) {
      Nap();
    } else {
      work.Do(task);
    }
  }
}

}  // namespace

Worker::Worker() {
  void* const memory = mmap(nullptr, sizeof(WorkerBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  board_ = new (memory) WorkerBoard;
  std::fflush(stdout);
  pid_ = fork();
  if (pid_ == 0) Serve(*board_);
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

Worker::~Worker() {
  Kill(5);
  close(pidfd_);
  munmap(board_, sizeof(WorkerBoard));
}

bool Worker::Await(State state, double seconds) {
  for (const double end = Seconds() + seconds; board_->state != state; Nap()) {
    if (Seconds() > end || pid_ < 0) return false;
    if (waitpid(pid_, nullptr, WNOHANG) > 0) {
      pid_ = -1;
      return false;
    }
  }
  return true;
}

void Worker::Tell(Task task, uint32_t rounds) {
  board_->rounds = rounds;
  board_->page[1] = 0;
  board_->state = State::kReady;
  board_->task = task;
}

vgpud::rm::ClientChannels Worker::Channels() const {
  std::vector<vgpud::rm::Object> objects;
  for (uint32_t before = 1, after = 0; before != after || before % 2 != 0; after = board_->changes) {
    before = board_->changes;
    objects.assign(board_->seen, board_->seen + board_->objects);
  }
  const auto clients = vgpud::rm::ChannelsOf(objects);
  for (const auto& client : clients)
    if (client.compute_group != 0) return client;
  return {};
}

double Worker::Kill(double limit) {
  if (pid_ <= 0) return 0;
  kill(pid_, SIGKILL);
  const double begun = Seconds();
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (Seconds() - begun > limit) return -1;
    Nap();
  }
  pid_ = -1;
  return Seconds() - begun;
}

bool Worker::AwaitLook() const {
  // The first one may have begun before.
  const uint64_t wanted = board_->looks + 2;
  for (const double end = Seconds() + 5; board_->looks < wanted; Nap())
    if (Seconds() > end) return false;
  return true;
}

double Worker::BeatsPerSecond(double seconds) const {
  const uint64_t before = board_->beats();
  const double begun = Seconds();
  usleep(static_cast<useconds_t>(seconds * 1e6));
  return static_cast<double>(board_->beats() - before) / (Seconds() - begun);
}

}  // namespace gpucheck
