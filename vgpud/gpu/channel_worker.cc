// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/channel_worker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "gpu/channels/driver_traits.h"
#include "gpu/channels/rm_file.h"

namespace vgpud::daemon {
namespace {

using State = rm::ChannelTurn::State;
constexpr auto kSeqCst = std::memory_order_seq_cst;
// Beside the states: a switch is under way.
constexpr uint32_t kSwitching = ~uint32_t{0};

bool IsFinal(uint32_t state) {
  return state != kSwitching && static_cast<State>(state) != State::kOn && static_cast<State>(state) != State::kOff;
}

}  // namespace

struct ChannelWorker::Hold::Shared {
  std::string name;
  Mapping board;
  std::unique_ptr<rm::ChannelTurn> turn;  // of the worker's thread
  std::atomic<bool> want_off{false}, gone{false};
  std::atomic<uint32_t> state{static_cast<uint32_t>(State::kOn)};
  std::atomic<uint64_t> wanted_ns{0}, took_ns{0};
  std::atomic<uint64_t> offs{0}, newcomers{0}, refusals{0};
};

ChannelWorker::Hold::~Hold() {
  shared_->gone.store(true);
  worker_.WakeUp();
}

void ChannelWorker::Hold::Want(bool off) {
  if (shared_->want_off.load(kSeqCst) == off) return;
  shared_->wanted_ns.store(MonotonicNs());
  shared_->want_off.store(off, kSeqCst);
  worker_.WakeUp();
}

// The worker says that it switches before it looks once more at what is wanted: either it sees our wish, or we see that
// it switches.
bool ChannelWorker::Hold::IsOff() const {
  return shared_->want_off.load(kSeqCst) && shared_->state.load(kSeqCst) == static_cast<uint32_t>(State::kOff);
}

bool ChannelWorker::Hold::IsOn() const {
  return !shared_->want_off.load(kSeqCst) && shared_->state.load(kSeqCst) == static_cast<uint32_t>(State::kOn);
}

State ChannelWorker::Hold::state() const {
  const uint32_t state = shared_->state.load(kSeqCst);
  return state == kSwitching ? State::kOn : static_cast<State>(state);
}

ChannelWorker::Counts ChannelWorker::Hold::counts() const {
  return {shared_->offs.load(), shared_->newcomers.load(), shared_->refusals.load()};
}

Ns ChannelWorker::Hold::took() const { return Ns{static_cast<int64_t>(shared_->took_ns.load())}; }

ChannelWorker::ChannelWorker(uint32_t driver_major, std::function<void()> done)
    : driver_major_(driver_major), done_(std::move(done)), thread_([this] { Main(); }) {}

ChannelWorker::~ChannelWorker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  WakeUp();
  thread_.join();
}

void ChannelWorker::WakeUp() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  wake_.notify_one();
}

std::unique_ptr<ChannelWorker::Hold> ChannelWorker::Add(ChannelSource source) {
  std::vector<std::unique_ptr<rm::RmFile>> files;
  for (UniqueFd& fd : source.files) files.push_back(std::make_unique<rm::OwnRmFile>(std::move(fd)));
  const auto* const board = source.board.At<const rm::ChannelBoard>(0);
  auto turn = std::make_unique<rm::ChannelTurn>(
      std::move(files), driver_major_, [board] { return rm::ReadBoard(*board); }, source.resumed);
  return Add(std::move(turn), source.name, std::move(source.board));
}

std::unique_ptr<ChannelWorker::Hold> ChannelWorker::Add(std::unique_ptr<rm::ChannelTurn> turn, const std::string& name,
                                                        Mapping board) {
  auto shared = std::make_shared<Shared>();
  shared->name = name;
  shared->board = std::move(board);
  shared->state.store(static_cast<uint32_t>(turn->state()));
  shared->want_off.store(turn->state() == State::kOff);
  shared->turn = std::move(turn);
  {
    const std::lock_guard lock(mutex_);
    all_.push_back(shared);
  }
  return std::unique_ptr<Hold>(new Hold(*this, std::move(shared)));
}

bool ChannelWorker::Serve(Shared& shared) {
  const uint32_t before = shared.state.load(kSeqCst);
  const bool off = shared.want_off.load(kSeqCst), is_off = before == static_cast<uint32_t>(State::kOff);
  if (IsFinal(before)) return false;
  if (off == is_off) {
    if (!is_off) return false;
    const uint64_t known = shared.turn->newcomers();
    if (shared.turn->Look() == State::kOff) {
      shared.newcomers.store(shared.turn->newcomers());
      if (shared.turn->newcomers() != known)
        LOG(kDebug, "{}: channels that it made while it was off the GPU are held", shared.name);
      return false;
    }
  } else {
    shared.state.store(kSwitching, kSeqCst);
    if (shared.want_off.load(kSeqCst) != off) {
      shared.state.store(before, kSeqCst);
      return true;
    }
    (void)(off ? shared.turn->Off() : shared.turn->On());
  }
  const State after = shared.turn->state();
  if (off && after == State::kOff && !is_off) {
    shared.took_ns.store(MonotonicNs() - shared.wanted_ns.load());
    if (shared.offs.fetch_add(1) == 0)
      LOG(kInfo, "{}: its channels were switched off at the end of its turn, within {} us", shared.name,
          shared.took_ns.load() / 1000);
  }
  if (IsFinal(static_cast<uint32_t>(after))) {
    shared.refusals.fetch_add(1);
    LOG(kError, "{}: its channels can't be switched {}: {}", shared.name, off ? "off" : "on", shared.turn->words());
  }
  shared.newcomers.store(shared.turn->newcomers());
  shared.state.store(static_cast<uint32_t>(after), kSeqCst);
  done_();
  return shared.want_off.load(kSeqCst) != off;
}

void ChannelWorker::Main() {
  pthread_setname_np(pthread_self(), "channels");
  // The next VF's turn waits for it. Refused to who may not.
  const sched_param least{::sched_get_priority_min(SCHED_FIFO)};
  (void)::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least);
  std::unique_lock lock(mutex_);
  while (!stop_) {
    woken_ = false;
    std::erase_if(all_, [](const auto& shared) { return shared->gone.load(); });
    const auto all = all_;
    lock.unlock();
    bool more = false, any_off = false;
    for (const auto& shared : all) {
      if (shared->gone.load()) continue;
      more |= Serve(*shared);
      any_off |= shared->state.load() == static_cast<uint32_t>(State::kOff);
    }
    lock.lock();
    if (more || stop_) continue;
    const auto woken = [this] { return woken_ || stop_; };
    if (any_off)
      wake_.wait_for(lock, kLookEvery, woken);
    else
      wake_.wait(lock, woken);
  }
}

}  // namespace vgpud::daemon
