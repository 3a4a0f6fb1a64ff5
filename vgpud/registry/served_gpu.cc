// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/served_gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

std::string Describe(const SliceWorld::Hang& hang) {
  const auto us = [](Ns time) { return time / std::chrono::microseconds{1}; };
  return fmt::format(
      "did not leave the GPU: {} us after it was told to it had computed for {} us and waited for a CPU for {} us{}",
      us(hang.since_told), us(hang.computed), us(hang.waited),
      hang.out_of_time ? ", out of excuses"
      : hang.asleep    ? ", it slept"
                       : "");
}

void TellHang(const Chronicle& chronicle, const std::string& gpu, const std::string& vf, const SliceWorld::Hang& hang) {
  const std::string text = Describe(hang);
  LOG(kError, "vf={}: executor pid={} {}: killed", vf, hang.pid, text);
  chronicle.Add({.kind = event_kind::kKilled, .vf = vf, .gpu = gpu, .pid = hang.pid, .text = "the executor " + text});
}

// The GPU that has no name of its own keeps its history where it was when there could be one only.
std::string HistoryDir(const std::string& state_dir, const GpuConfig& gpu) {
  return gpu.name == kUnnamedGpu ? state_dir : fmt::format("{}/gpus/{}", state_dir, gpu.name);
}

// Where the GPU has no size of its own, as large as VFs may be.
VfMemory MostMemory(const GpuConfig& gpu, uint64_t host_ram_bytes) {
  const uint64_t host = host_ram_bytes != 0 ? host_ram_bytes : control::kMaxHostMemoryBytes;
  return {gpu.gpu_vram_bytes != 0 ? gpu.gpu_vram_bytes : control::kMaxVramBytes,
          std::min(host, control::kMaxHostMemoryBytes)};
}

std::optional<cpu_set_t> NearProcessors(const Topology* topology, const GpuConfig& gpu) {
  if (topology == nullptr || !gpu.numa_node) return std::nullopt;
  if (topology->Find(*gpu.numa_node) == nullptr)
    LOG(kWarning, "gpu={}: this host has no NUMA node {}: its VFs run anywhere", gpu.name, *gpu.numa_node);
  return ProcessorsNear(*topology, gpu.numa_node, AllProcessors());
}

}  // namespace

Result<std::unique_ptr<ServedGpu>> ServedGpu::Make(const DaemonParts& around, GpuConfig own_config, Events events) {
  const Config& all = around.config;
  std::unique_ptr<ServedGpu> gpu{new ServedGpu(std::move(own_config))};
  const GpuConfig& config = gpu->config_;
  GpuThread::Options scheduler = config.scheduler;
  scheduler.shares_card = config.gpu.cuda_oversubscribe;
  scheduler.on_cpu = !config.gpu.is_cuda();
  gpu->thread_ = std::make_unique<GpuThread>(
      scheduler, TRY(MakePolicy(config.settings.policy, config.settings.options)),
      GpuThread::Events{
          .on_killed = [chronicle = around.chronicle, gpu = config.name](
                           VfId, const std::string& vf,
                           const SliceWorld::Hang& hang) { TellHang(*chronicle, gpu, vf, hang); },
          .on_parked = std::move(events.on_parked),
          .on_left = [self = gpu.get()](VfId vf, const VfStats& last) { self->telemetry_->Left(vf, last); }},
      around.replies);
  gpu->telemetry_ = std::make_unique<Telemetry>(
      around.loop, *gpu->thread_, around.replies,
      Telemetry::Options{
          .state_dir = HistoryDir(all.state_dir, config), .write_every = all.history_interval, .unix_seconds = {}});
  gpu->of_vfs_ = std::make_unique<VfSurroundings>(
      VfSurroundings{.loop = around.loop,
                     .gpu = *gpu->thread_,
                     .gpu_name = config.name,
                     .runtime_dir = all.runtime_dir,
                     .choice = config.gpu,
                     .soft_gpu_threads = config.soft_gpu_threads,
                     .soft_gpu_capability = config.soft_gpu_capability,
                     .most_memory = MostMemory(config, all.host_ram_bytes),
                     .vf_program = all.vf_program,
                     .exec_program = all.exec_program,
                     .confinement = around.confinement,
                     .event_budgets = all.event_budgets,
                     .client_memory = all.client_memory,
                     .cgroups = around.cgroups,
                     .mover = around.mover,
                     .keeper = around.keeper,
                     .chronicle = around.chronicle,
                     .on_failed = std::move(events.on_failed),
                     .on_turnout = [self = gpu.get(), turnout = std::move(events.on_turnout)] { turnout(*self); },
                     .processors = NearProcessors(around.topology, config)});
  return gpu;
}

GpuReport ServedGpu::Report(const GpuRoom& room, Protections protections) const {
  return {.name = config_.name,
          .kind = config_.gpu.kind(),
          .capability = config_.facts ? config_.facts->capability : config_.soft_gpu_capability,
          .facts = config_.facts,
          .settings = settings_,
          .preempt_timeout_us = static_cast<uint64_t>(config_.scheduler.switcher.preempt_timeout.count() / 1000),
          .switch_cost = thread_->switch_cost(),
          .vfs = room.vfs,
          .fifo = thread_->is_fifo(),
          .vram_bytes = room.vram_bytes,
          .vram_promised_bytes = room.promised_bytes,
          .numa_node = room.node,
          .revision = revision(),
          .protections = std::move(protections)};
}

}  // namespace vgpud::daemon
