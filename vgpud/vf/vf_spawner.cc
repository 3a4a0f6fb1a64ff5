// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/vf_spawner.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "base/exec_link.h"
#include "base/log.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/tenants/owner.h"

namespace vgpud::daemon {
namespace {

// Runs on the thread of the VF's log.
ChildLog::Sink SinkOf(const VfSurroundings& around, const std::string& vf) {
  return [chronicle = around.chronicle, gpu = around.gpu_name, vf](pid_t pid, std::string_view line) {
    LogRelayed(fmt::format("vf={} pid={}", vf, pid), line);
    chronicle->Heard(vf, gpu, pid, line);
  };
}

VfCgroup::Limits LimitsOf(const VfSurroundings& around, const VfSpec& spec) {
  return VfCgroup::LimitsFor(spec.vram_bytes, spec.host_memory_bytes, around.soft_gpu_threads);
}

}  // namespace

VfSpawner::VfSpawner(const VfSurroundings& around, VfId id, const VfSpec& spec)
    : around_(around),
      id_(id),
      name_(spec.name),
      log_(SinkOf(around, spec.name), SharerOf(spec), around.logs),
      cgroup_(around.cgroups, spec.name, LimitsOf(around, spec)) {
  if (!cgroup_.problem().empty()) LOG(kWarning, "vf={}: not all limits are set: {}", name_, cgroup_.problem());
}

Result<VfSpawner::Spawned> VfSpawner::Spawn(Child::Spec spec) {
  Pipe log = TRY(MakePipe());
  spec.files.push_back({log.write.get(), STDERR_FILENO});
  for (auto& argument : around_.confinement.ArgumentsFor(id_)) spec.arguments.push_back(std::move(argument));
  spec.confinement = around_.confinement.kind;
  spec.user = around_.confinement.UserOf(id_);
  Spawned spawned{TRY(Child::Spawn(spec)), {}};
  if (around_.processors) SetOtherThreads(spawned.child.pid(), 0, {.processors = around_.processors});
  TRY(MoveIntoGroup(spawned.child));
  if (around_.keeper != nullptr) spawned.log = TRY(Dup(log.read.get()));
  log_.Follow(spawned.child.pid(), std::move(log.read));
  return spawned;
}

Result<void> VfSpawner::Adopt(const Child& child, UniqueFd log) {
  log_.Follow(child.pid(), std::move(log));
  return MoveIntoGroup(child);
}

Result<void> VfSpawner::MoveIntoGroup(const Child& child) {
  // It holds on to the process, so that its number cannot come to mean another one.
  const bool posted =
      around_.mover.Post([move = cgroup_.Mover(), pid = child.pid(), pidfd = child.HoldPid(), name = name_] {
        pollfd ended{pidfd->get(), POLLIN, 0};
        if (::poll(&ended, 1, 0) != 0) return;
        if (const auto moved = move(pid); !moved && moved.error().code != std::errc::no_such_process)
          LOG(kWarning, "vf={} pid={}: outside of its control group: {}", name, pid, moved.error().context);
      });
  if (posted) return {};
  return Fail(std::errc::resource_unavailable_try_again, "too many processes wait for their control group");
}

std::vector<std::string> VfSpawner::LimitArguments(const VfSpec& spec) const {
  if (!around_.confinement.own_users) return {};
  return ExecArguments().Add(ExecOption::kMostThreads, std::to_string(LimitsOf(around_, spec).pids)).Take();
}

}  // namespace vgpud::daemon
