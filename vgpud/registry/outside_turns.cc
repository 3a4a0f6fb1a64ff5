// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/outside_turns.h"

#include <unistd.h>

#include <algorithm>

namespace vgpud::daemon {
namespace {

constexpr Ns kLookEvery = std::chrono::milliseconds{100};
constexpr Ns kLookAtRest = std::chrono::milliseconds{500};  // each look at a VF costs files

}  // namespace

OutsideTurns::OutsideTurns(EventLoop& loop, const ServedGpus& gpus, const VfRegistry& vfs, CgroupTree& cgroups,
                           double percent)
    : gpus_(gpus), vfs_(vfs), cgroups_(cgroups), percent_(percent), timer_(loop.Timer([this] { Look(); })) {}

void OutsideTurns::Begin() {
  if (vfs_.all().size() == 1) timer_->Arm(kLookEvery);
}

void OutsideTurns::Look() {
  const auto& all = vfs_.all();
  if (all.empty()) return;
  const bool at_rest =
      std::all_of(all.begin(), all.end(), [](const auto& each) { return each.second->cpu().at_rest(); });
  timer_->Arm(at_rest ? kLookAtRest : kLookEvery);
  for (const auto& gpu : gpus_.all()) {
    const auto vfs = vfs_.On(*gpu);
    if (vfs.empty()) continue;
    std::vector<VfId> ids;
    for (const auto& vf : vfs) ids.push_back(vf->id());
    gpu->thread().ReadAccounts(ids,
                               [this, ids](const GpuAccounts& accounts) { Charge(ids, accounts.at, accounts.vfs); });
  }
}

void OutsideTurns::Charge(const std::vector<VfId>& ids, TimePoint now, const std::vector<VfAccount>& accounts) {
  const double all = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)) * percent_ / 100;
  const double each = all / static_cast<double>(std::max<size_t>(vfs_.all().size(), 1));
  for (size_t i = 0; i < ids.size(); ++i)
    if (const auto vf = vfs_.Find(ids[i]); vf != nullptr) vf->Charge(accounts[i], each, now);
  bool some_give_way = false, nobody_else = true;
  for (const auto& [id, vf] : vfs_.all()) {
    const bool gives_way = vf->cpu().outside().over();
    some_give_way |= gives_way;
    nobody_else &= gives_way || !vf->cpu().computes();
  }
  cgroups_.SetGivesWay(some_give_way && nobody_else);
}

}  // namespace vgpud::daemon
