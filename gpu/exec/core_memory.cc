// Host memory of the channel: who must wait for it, who fails without it.
#include <fmt/core.h>

#include <new>

#include "gpu/exec/core.h"
#include "gpu/exec/heap.h"

namespace vgpud {
namespace {

// What an entry leaves behind beside its payload: an operation, a stream, a function's handle.
constexpr uint64_t kPerEntry = 4096;

}  // namespace

// nullopt: there is room for what it keeps.
std::optional<Core::Verdict> Core::AdmitEntry(Entry& entry) {
  // An image has a mapping of its own.
  const uint64_t image =
      entry.sqe.op == VGPU_OP_MODULE_BEGIN && entry.sqe.args[1] <= Modules::kMaxImageBytes ? entry.sqe.args[1] : 0;
  const uint64_t need = kPerEntry + entry.span.size() + image;
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

bool Core::OthersHoldMemory(const Op& op) {
  bool others = false;
  streams_.FindHead([&](const Op& other) { return others = &other != &op && other.holds_blocks; });
  return others;
}

// After a step that got nowhere for lack of `bytes`. False: there are none and nobody will give some back.
bool Core::SetShort(Op& op, uint64_t bytes) {
  if (op.last_chance && !OthersHoldMemory(op)) return false;
  op.awaits_end = std::exchange(op.last_chance, false);
  op.short_of = bytes;
  any_short_ = true;
  return true;
}

// One after the other, so that a large wish that is refused does not take a small one with it.
void Core::ServeShortOps() {
  Op* first = nullptr;
  any_short_ = false;
  streams_.FindHead([&](Op& op) {
    if (op.short_of == 0) return false;
    any_short_ = true;
    if (op.awaits_end || op.last_chance) return false;
    first = &op;
    return true;
  });
  if (first == nullptr) return;
  switch (memory().Ask(HostMemory::Asker::kKernel, first->short_of)) {
    case HostMemory::Answer::kGranted:
      first->short_of = 0;
      return;
    case HostMemory::Answer::kLater:
      return;
    case HostMemory::Answer::kRefused:
      // What more than the quota is wanted for never gets it.
      if (first->short_of <= memory().quota() && OthersHoldMemory(*first)) {
        first->awaits_end = true;
      } else {
        first->last_chance = true;
      }
  }
}

GpuResult<std::unique_ptr<GpuModule>> Core::RunJob(Job& job) {
  const auto load = [&]() -> std::optional<GpuResult<std::unique_ptr<GpuModule>>> {
    try {
      const heap::Limit limit(true);
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
  if (result) return std::move(*result);
  return GpuFail(CuStatus::kOutOfMemory,
                 fmt::format("MODULE_LOAD: an image of {} bytes takes more than what is left of the VF's {} bytes of "
                             "host memory",
                             job.image.size(), memory().quota()));
}

// GPU thread, in RunJob.
bool Core::AdmitJobVram(uint64_t bytes) {
  Job& job = *job_;
  if (job.vram == Job::kYes && job.vram_bytes == bytes) return true;  // a second attempt
  job.vram_bytes = bytes;
  job.vram = Job::kAsked;
  host_.progress();
  job.vram.wait(Job::kAsked);
  return job.vram == Job::kYes;
}

void Core::AnswerJobVram(bool yes) {
  job_->vram = yes ? Job::kYes : Job::kNo;
  job_->vram.notify_all();
}

}  // namespace vgpud
