// SPDX-License-Identifier: Apache-2.0
// Loads modules, and kernels of modules, outside of the lock: one at a time, on another thread, when whoever keeps
// count of loads has allowed it. All functions are for the ring side, under the lock, but for Run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/host_memory.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/memory/area.h"
#include "gpu/exec/memory/vram_share.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

struct LoadJob {
  GpuModule* module = nullptr;  // whose kernel `function` it is; nullptr: `image`
  std::string function;
  std::span<const std::byte> image;
  GpuVa managed{};  // where its managed variables are to be, managed_bytes of them; 0: device memory
  uint64_t managed_bytes = 0;
  std::shared_ptr<AreaUsers> area = {};  // that the managed variables are in; nullptr: in none
  uint64_t code_bytes = 0;               // that were read of it; with the result
  bool taken = false;
  std::optional<GpuResult<std::unique_ptr<GpuModule>>> result;
  // The module's VRAM: Run asks, and waits for the ring side to answer.
  enum : uint32_t { kNobodyAsks, kAsked, kYes, kNo };
  std::atomic<uint32_t> vram{kNobodyAsks};
  uint64_t vram_bytes = 0;
};

class ModuleLoader {
 public:
  // All outlive it. `progress` wakes the I/O thread.
  ModuleLoader(GpuContext& context, VramShare& vram, HostMemory& memory, const std::function<void()>& progress,
               bool asks)
      : context_(context), vram_(vram), memory_(memory), progress_(progress), asks_(asks) {
    OnNewContext();
  }
  // The context has a fresh Gpu.
  void OnNewContext();

  // An image may be loaded only when OnReply says so: TakeRequest is true once for each.
  bool MayLoad();
  bool TakeRequest();
  void OnReply();
  // Bytes of code that loads have read since the last call, to be paid for.
  uint64_t TakeCodeRead() { return std::exchange(code_read_, 0); }

  // The job that there is; nullptr: none.
  LoadJob* job() { return job_ ? &*job_ : nullptr; }
  // Makes one; there was none.
  LoadJob& Begin() { return job_.emplace(); }
  // To load an image, which takes the permission.
  LoadJob& BeginImage(std::span<const std::byte> image) {
    permit_ = Permit::kNone;
    job_.emplace().image = image;
    return *job_;
  }
  // Answers Run when it waits for VRAM.
  void ServeVram();
  // Has the job ended? What was read for it counts then.
  bool IsOver();
  // It is forgotten; `drop`: and so is what it had.
  void End(bool drop);
  // The channel is over: Run ends soon.
  void Close();

  // Is there a job that nobody has taken?
  bool HasJob() const { return job_.has_value() && !job_->taken; }
  // No step may begin.
  bool Pending() const { return job_.has_value() && !job_->result; }
  // For Run, without the lock while no step is running; the result is the job's then.
  LoadJob& Take() {
    job_->taken = true;
    return *job_;
  }
  GpuResult<std::unique_ptr<GpuModule>> Run(LoadJob& job);

 private:
  // Of Run's thread, inside of Gpu::Load.
  bool AdmitVram(uint64_t bytes);
  void AnswerVram(bool yes);

  GpuContext& context_;
  VramShare& vram_;
  HostMemory& memory_;
  const std::function<void()>& progress_;
  const bool asks_;
  std::optional<LoadJob> job_;
  enum class Permit { kNone, kWanted, kAsked, kGiven };
  Permit permit_ = Permit::kNone;  // to load the image whose entry waits
  uint64_t code_read_ = 0;
};

}  // namespace vgpud::exec
