// SPDX-License-Identifier: Apache-2.0
// A VF whose vgpud-vf has died is made again, for the next client: where VFs outlive vgpud, and where no VM used it. A
// VM that did can't connect again, so without --keep-vfs its VF stays failed for an operator to see.
#include <fmt/core.h>

#include "base/log.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {
namespace {

// One that its guest has taken over, or that a fault brings down at once, is not given one attempt after the other.
constexpr Ns kNotAgainFor = std::chrono::seconds{60};

}  // namespace

void VfRegistry::Remake(const std::string& name) {
  const auto vf = Find(name);
  if (closed_ || vf == nullptr || vf->state() != Vf::State::kFailed) return;
  const bool outlives = around_.keeper != nullptr && !vf->spec().transient;
  if (!outlives && !vf->crashed_without_vm()) return;
  const TimePoint now = Now();
  const auto before = remade_.find(name);
  if (before != remade_.end() && now - before->second < kNotAgainFor) {
    LOG(kError,
        "vf={}: its vgpud-vf died again within a minute: it stays failed (back with: vgpuctl destroy and create)",
        name);
    return;
  }
  remade_[name] = now;
  remaking_.insert(name);
  EndVf(name, false, [this, definition = vf->definition()](const ApiResult<VfReport>& ended) {
    const std::string& own_name = definition.spec.name;
    // An operator has destroyed it meanwhile.
    if (remaking_.erase(own_name) == 0 || closed_) return;
    const auto id = ended ? FreeId(definition.spec, VfId{definition.number}) : tl::unexpected(ended.error());
    if (!id) return Lose(own_name, ToText(definition.uuid), id.error().error);
    StartVf(*id, definition.uuid, definition.spec, {}, [this, definition](const ApiResult<VfReport>& started) {
      if (!started) return Lose(definition.spec.name, ToText(definition.uuid), started.error().error);
      LOG(kWarning,
          "vf={}: made again for the next client. QEMU does not connect a second time: if a VM had this VF, unplug the "
          "device from it and plug it in again",
          definition.spec.name);
    });
  });
}

}  // namespace vgpud::daemon
