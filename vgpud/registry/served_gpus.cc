// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/served_gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "vgpud/host/when_all.h"
#include "vgpud/model/nearest.h"

namespace vgpud::daemon {

Result<std::unique_ptr<ServedGpus>> ServedGpus::Make(const DaemonParts& around, const ServedGpu::Events& events) {
  CHECK(!around.config.gpus.empty());
  std::unique_ptr<ServedGpus> gpus{new ServedGpus};
  for (GpuConfig config : around.config.gpus) {
    config.scheduler.waiter.nth_cpu = static_cast<uint32_t>(gpus->gpus_.size());
    if (config.name != kUnnamedGpu) config.scheduler.thread_name = "sched-" + config.name;
    gpus->gpus_.push_back(TRY(ServedGpu::Make(around, std::move(config), events)));
  }
  return gpus;
}

std::vector<std::string> ServedGpus::names() const {
  std::vector<std::string> names;
  for (const auto& gpu : gpus_) names.push_back(gpu->name());
  return names;
}

std::string ServedGpus::names_text() const {
  std::string all;
  for (const auto& gpu : gpus_) all += (all.empty() ? "" : ", ") + gpu->name();
  return all;
}

ApiResult<ServedGpu*> ServedGpus::Find(const std::string& name) const {
  if (name.empty() && !several()) return gpus_.front().get();
  for (const auto& gpu : gpus_)
    if (gpu->name() == name) return gpu.get();
  if (name.empty())
    return ApiFail(ErrorKind::kInvalid, fmt::format("there are {} GPUs, say which one: {}", gpus_.size(), names_text()),
                   "gpu");
  return ApiFail(ErrorKind::kNotFound,
                 fmt::format("there is no gpu \"{}\": {}", name, control::DidYouMean(name, names())), "gpu");
}

ServedGpu& ServedGpus::Of(const Vf& vf) const {
  const auto gpu =
      std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& each) { return each->name() == vf.gpu_name(); });
  CHECK(gpu != gpus_.end());
  return **gpu;
}

Uuid ServedGpus::UuidFor(const std::string& vf, const ServedGpu& gpu) const {
  std::optional<Uuid> elsewhere;
  for (const auto& each : gpus_) {
    const auto known = each->telemetry().KnownUuid(vf);
    if (known && each.get() == &gpu) return *known;
    if (known) elsewhere = known;
  }
  return elsewhere ? *elsewhere : RandomUuid();
}

void ServedGpus::AskSchedulers(std::function<void()> done) {
  const auto answered = WhenAll(gpus_.size(), std::move(done));
  for (const auto& gpu : gpus_) gpu->thread().ReadAccounts({}, [answered](const GpuAccounts&) { answered(); });
}

void ServedGpus::RefreshHistories(std::function<void()> done) {
  const auto refreshed = WhenAll(gpus_.size(), std::move(done));
  for (const auto& gpu : gpus_) gpu->telemetry().Refresh(refreshed);
}

void ServedGpus::FinishHistories(std::function<void()> done) {
  const auto finished = WhenAll(gpus_.size(), std::move(done));
  for (const auto& gpu : gpus_) gpu->telemetry().Finish(finished);
}

void ServedGpus::EndThreads() {
  for (const auto& gpu : gpus_) gpu->EndThread();
}

void ServedGpus::LeaveHistories(Ns limit) {
  for (const auto& gpu : gpus_) gpu->telemetry().Leave(limit);
}

}  // namespace vgpud::daemon
