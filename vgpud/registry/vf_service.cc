// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_service.h"

#include <utility>

namespace vgpud::daemon {
namespace {

constexpr Ns kHistoryLimit = std::chrono::seconds{2};
constexpr Ns kDefinitionsLimit = std::chrono::seconds{2};

}  // namespace

Result<std::unique_ptr<VfService>> VfService::Make(const DaemonParts& given) {
  DaemonParts around = given;
  around.chronicle = TRY(Chronicle::Make());
  // The GPUs are there before the service that hears of their events; none comes before the loop runs.
  const auto self = std::make_shared<VfService*>(nullptr);
  auto gpus = TRY(ServedGpus::Make(
      around,
      {.on_parked =
           [self](VfId id) {
             if (const auto vf = (*self)->vfs_.Find(id); vf != nullptr) vf->OnParked();
           },
       .on_failed =
           [self](const std::string& vf) { (*self)->around_.loop.Post([self, vf] { (*self)->lives_.Remake(vf); }); },
       .on_turnout =
           [self](const ServedGpu& gpu) {
             (*self)->new_vfs_.LookForRoom();
             (*self)->vfs_.TellExpectedShares(gpu);
             (*self)->on_turnout_();
           }}));
  std::unique_ptr<VfService> service{new VfService(around, std::move(gpus))};
  *self = service.get();
  return service;
}

VfService::VfService(const DaemonParts& around, std::unique_ptr<ServedGpus> gpus)
    : around_(around),
      gpus_(std::move(gpus)),
      store_(around.config.state_dir, around.keeper != nullptr, vfs_.lost(), around.replies),
      limits_(*gpus_, vfs_, around.config),
      admission_(*gpus_, vfs_, limits_, around.config.placement),
      outside_turns_(around.loop, *gpus_, vfs_, around.cgroups, around.config.outside_turns_percent),
      lives_(around.loop, *gpus_, vfs_, store_, admission_, outside_turns_, *around.chronicle,
             around.keeper != nullptr),
      new_vfs_(around.loop, *gpus_, limits_, admission_, lives_),
      reports_(around, *gpus_, vfs_),
      changes_(*gpus_, vfs_, store_, limits_, reports_, *around.chronicle),
      added_(around.loop.OnReadable(around.chronicle->wake(), [this] { around_.chronicle->WakeReaders(); })) {
  vfs_.lost().OnAdded([this](const std::string& name) {
    const VfReport lost = vfs_.lost().Report(name);
    around_.chronicle->Add({.kind = event_kind::kLost, .vf = name, .gpu = lost.gpu, .text = lost.reason});
  });
  limits_.OnChange([this] { new_vfs_.LookForRoom(); });
}

VfService::~VfService() {
  vfs_.Clear();
  gpus_->EndThreads();
  store_.Leave(kDefinitionsLimit);
  gpus_->LeaveHistories(kHistoryLimit);
}

void VfService::Restore(KeptVfs kept, std::function<void()> done) {
  Restoration::Begin(
      {around_.loop, around_.keeper, *gpus_, vfs_, store_, limits_, admission_, lives_, *around_.chronicle},
      std::move(kept), std::move(done));
}

void VfService::Close(std::function<void()> done) {
  vfs_.Close();
  new_vfs_.RefuseAll();
  lives_.EndAll([this, done = std::move(done)] { Settle(done); });
}

void VfService::Settle(std::function<void()> done) {
  // What was answered is on the disk; for the rest there is a limit.
  const auto once =
      std::make_shared<std::function<void()>>([this, done = std::move(done)] { gpus_->FinishHistories(done); });
  const auto go_on = [once] {
    if (const auto then = std::exchange(*once, nullptr)) then();
  };
  settle_timer_ = around_.loop.Timer(go_on);
  settle_timer_->Arm(kDefinitionsLimit);
  store_.WhenIdle(go_on);
}

}  // namespace vgpud::daemon
