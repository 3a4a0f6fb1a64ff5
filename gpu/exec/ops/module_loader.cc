// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/module_loader.h"

#include <fmt/core.h>

#include <new>

#include "gpu/capability/module_memory.h"
#include "gpu/exec/memory/heap.h"

namespace vgpud::exec {

void ModuleLoader::OnNewContext() {
  if (ModuleMemory* const modules = context_.can().module_memory; modules != nullptr)
    modules->AdmitVram([this](uint64_t bytes) { return AdmitVram(bytes); });
}

// Loads are so many bytes per second for the whole VF: who keeps count answers when it is this one's turn.
bool ModuleLoader::MayLoad() {
  if (!asks_) return true;
  if (permit_ == Permit::kNone) permit_ = Permit::kWanted;
  return permit_ == Permit::kGiven;
}

bool ModuleLoader::TakeRequest() {
  if (permit_ != Permit::kWanted) return false;
  permit_ = Permit::kAsked;
  return true;
}

void ModuleLoader::OnReply() {
  if (permit_ == Permit::kAsked) permit_ = Permit::kGiven;
}

void ModuleLoader::ServeVram() {
  if (job_->vram != LoadJob::kAsked) return;
  const auto answer = vram_.Reserve(job_->vram_bytes);
  if (answer == VramShare::Answer::kGranted) vram_.Use(job_->vram_bytes);
  if (answer != VramShare::Answer::kAsk) AnswerVram(answer == VramShare::Answer::kGranted);
}

bool ModuleLoader::IsOver() {
  if (!job_->result) return false;
  code_read_ += std::exchange(job_->code_bytes, 0);
  return true;
}

void ModuleLoader::End(bool drop) {
  if (drop && job_->vram == LoadJob::kYes) vram_.Return(job_->vram_bytes);
  job_.reset();
}

void ModuleLoader::Close() {
  if (job_) AnswerVram(false);
}

GpuResult<std::unique_ptr<GpuModule>> ModuleLoader::Run(LoadJob& job) {
  Gpu& gpu = context_.gpu();
  const uint64_t read_before = gpu.code_bytes_read();
  const auto load = [&]() -> std::optional<GpuResult<std::unique_ptr<GpuModule>>> {
    try {
      const heap::Limit limit(true);
      if (job.module != nullptr) {
        const auto read = job.module->LoadFunction(job.function);
        if (!read) return tl::unexpected(read.error());
        job.code_bytes = *read;
        return std::unique_ptr<GpuModule>();
      }
      if (ModuleMemory* const modules = context_.can().module_memory; modules != nullptr)
        modules->PlaceManaged(job.managed, job.managed_bytes, [area = job.area](const std::function<void()>& write) {
          if (area != nullptr) return area->While(write);
          write();
          return true;
        });
      return gpu.Load(job.image);
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  };
  auto result = load();
  if (!result) {
    gpu.DropCaches();
    result = load();
  }
  job.code_bytes += gpu.code_bytes_read() - read_before;
  if (result) return std::move(*result);
  if (job.module != nullptr)
    return GpuFail(
        CuStatus::kOutOfMemory,
        fmt::format("MODULE_FUNCTION: the code of {} takes more than what is left of the VF's {} bytes of host memory",
                    job.function.substr(0, 200), memory_.quota()));
  return GpuFail(CuStatus::kOutOfMemory,
                 fmt::format("MODULE_LOAD: an image of {} bytes takes more than what is left of the VF's {} bytes of "
                             "host memory",
                             job.image.size(), memory_.quota()));
}

bool ModuleLoader::AdmitVram(uint64_t bytes) {
  LoadJob& job = *job_;
  if (job.vram == LoadJob::kYes && job.vram_bytes == bytes) return true;  // a second attempt
  job.vram_bytes = bytes;
  job.vram = LoadJob::kAsked;
  progress_();
  lock_check::BeforeWait();
  job.vram.wait(LoadJob::kAsked);
  return job.vram == LoadJob::kYes;
}

void ModuleLoader::AnswerVram(bool yes) {
  job_->vram = yes ? LoadJob::kYes : LoadJob::kNo;
  job_->vram.notify_all();
}

}  // namespace vgpud::exec
