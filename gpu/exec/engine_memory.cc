// SPDX-License-Identifier: Apache-2.0
// Host memory of the channel: who must wait for it, who fails without it.
#include <fmt/core.h>

#include <new>

#include "gpu/capability/module_memory.h"
#include "gpu/exec/channel_engine.h"
#include "gpu/exec/memory/heap.h"

namespace vgpud::exec {
namespace {

// What an entry leaves behind beside its payload: an operation, a stream, a function's handle.
constexpr uint64_t kPerEntry = 4096;
// Times that a kernel finds missing what was there a moment ago.
constexpr uint32_t kMostGrants = 8;

}  // namespace

// nullopt: there is room for what it keeps.
std::optional<ChannelEngine::Verdict> ChannelEngine::AdmitEntry(Entry& entry) {
  // An image has a mapping of its own.
  const uint64_t image =
      entry.sqe.op == VGPU_OP_MODULE_BEGIN && entry.sqe.args[1] <= Modules::kMaxImageBytes ? entry.sqe.args[1] : 0;
  const uint64_t need = kPerEntry + entry.span.size() + image;
  if (!heap::KeepReserve())
    return Reject(entry, CuStatus::kOutOfMemory,
                  fmt::format("{}: the host gives the VF no more memory", FindOp(entry.sqe.op)->name));
  switch (memory().Ask(HostMemory::Asker::kRing, need)) {
    case HostMemory::Answer::kLater:
      return Verdict::kWait;
    case HostMemory::Answer::kRefused:
      return Reject(entry, CuStatus::kOutOfMemory,
                    fmt::format("{}: {} bytes exceed what is left of the VF's {} bytes of host memory",
                                FindOp(entry.sqe.op)->name, need, memory().quota()));
    case HostMemory::Answer::kGranted:
      break;
  }
  entry.admitted = true;
  return std::nullopt;
}

// There was no memory at all for what `entry` asks for. What it had begun is undone.
ChannelEngine::Verdict ChannelEngine::OnNoMemory(Entry& entry) {
  // A reset that has taken the context away leaves nothing to go on with.
  if (gpu_ == nullptr) throw;
  if (job_) {
    if (!job_->result) return Verdict::kWait;
    if (entry.sqe.op == VGPU_OP_MODULE_LOAD) {
      DropJob(entry.sqe.args[0]);
    } else {
      job_.reset();
    }
  }
  return Reject(entry, CuStatus::kOutOfMemory,
                fmt::format("{}: the host has no memory for it", FindOp(entry.sqe.op)->name));
}

bool ChannelEngine::OthersHoldMemory(const Op& op) {
  bool others = false;
  streams_.FindHead([&](const Op& other) { return others = &other != &op && other.holds_blocks; });
  return others;
}

// After a step that got nowhere for lack of `bytes`. False: there are none and nobody will give some back.
bool ChannelEngine::SetShort(Op& op, uint64_t bytes) {
  const bool others = OthersHoldMemory(op);
  if (op.last_chance && !others) return false;
  op.awaits_end = std::exchange(op.last_chance, false);
  // What is there again and again, and does not help, is no reason to go round for ever.
  if (op.grants >= kMostGrants) (others ? op.awaits_end : op.last_chance) = true;
  op.short_of = bytes;
  any_short_ = true;
  news_ = true;
  return true;
}

Op* ChannelEngine::NextShortOp() {
  Op* first = nullptr;
  any_short_ = false;
  streams_.FindHead([&](Op& op) {
    if (op.short_of == 0) return false;
    any_short_ = true;
    if (op.awaits_end || op.last_chance) return false;
    first = &op;
    return true;
  });
  return first;
}

// One after the other, so that a large wish that is refused does not take a small one with it.
void ChannelEngine::ServeShortOps() {
  while (Op* op = NextShortOp()) {
    switch (memory().Ask(HostMemory::Asker::kKernel, op->short_of)) {
      case HostMemory::Answer::kGranted:
        op->short_of = 0;
        ++op->grants;
        serve_next_short_ = true;
        return;
      case HostMemory::Answer::kLater:
        return;
      case HostMemory::Answer::kRefused:
        // What more than the quota is wanted for never gets it.
        if (op->short_of <= memory().quota() && OthersHoldMemory(*op)) {
          op->awaits_end = true;
        } else {
          op->last_chance = true;
        }
    }
  }
}

GpuResult<std::unique_ptr<GpuModule>> ChannelEngine::RunJob(Job& job) {
  const uint64_t read_before = gpu_->code_bytes_read();
  const auto load = [&]() -> std::optional<GpuResult<std::unique_ptr<GpuModule>>> {
    try {
      const heap::Limit limit(true);
      if (job.module != nullptr) {
        const auto read = job.module->LoadFunction(job.function);
        if (!read) return tl::unexpected(read.error());
        job.code_bytes = *read;
        return std::unique_ptr<GpuModule>();
      }
      if (ModuleMemory* const modules = can().module_memory; modules != nullptr)
        modules->PlaceManaged(job.managed, job.managed_bytes, [area = job.area](const std::function<void()>& write) {
          if (area != nullptr) return area->While(write);
          write();
          return true;
        });
      return gpu_->Load(job.image);
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  };
  auto result = load();
  if (!result) {
    gpu_->DropCaches();
    result = load();
  }
  job.code_bytes += gpu_->code_bytes_read() - read_before;
  if (result) return std::move(*result);
  if (job.module != nullptr)
    return GpuFail(
        CuStatus::kOutOfMemory,
        fmt::format("MODULE_FUNCTION: the code of {} takes more than what is left of the VF's {} bytes of host memory",
                    job.function.substr(0, 200), memory().quota()));
  return GpuFail(CuStatus::kOutOfMemory,
                 fmt::format("MODULE_LOAD: an image of {} bytes takes more than what is left of the VF's {} bytes of "
                             "host memory",
                             job.image.size(), memory().quota()));
}

// The thread of RunJob.
bool ChannelEngine::AdmitJobVram(uint64_t bytes) {
  Job& job = *job_;
  if (job.vram == Job::kYes && job.vram_bytes == bytes) return true;  // a second attempt
  job.vram_bytes = bytes;
  job.vram = Job::kAsked;
  callbacks_.progress();
  lock_check::BeforeWait();
  job.vram.wait(Job::kAsked);
  return job.vram == Job::kYes;
}

void ChannelEngine::AnswerJobVram(bool yes) {
  job_->vram = yes ? Job::kYes : Job::kNo;
  job_->vram.notify_all();
}

}  // namespace vgpud::exec
