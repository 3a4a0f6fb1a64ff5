// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/memory_change.h"

#include <fmt/core.h>

#include <utility>

#include "vgpud/host/when_all.h"

namespace vgpud::daemon {
namespace {

VfMemory Before(const MemoryChange::Item& item) { return item.was; }
VfMemory Between(const MemoryChange::Item& item) { return Smaller(item.was, item.is); }
VfMemory After(const MemoryChange::Item& item) { return item.is; }

void Settle(const MemoryChange::Item& item, const VfMemory& promised, const VfMemory& limit) {
  if (const auto vf = item.vf.lock()) vf->Adopt(promised, limit);
}

}  // namespace

ApiResult<std::shared_ptr<MemoryChange>> MemoryChange::Begin(std::set<VfId>& busy, std::vector<Item> items) {
  const std::shared_ptr<MemoryChange> change{new MemoryChange(busy)};
  for (Item& item : items) {
    const auto vf = item.vf.lock();
    if (vf == nullptr) continue;
    if (!busy.insert(vf->id()).second)
      return ApiFail(ErrorKind::kConflict,
                     fmt::format("vf \"{}\": another request changes its memory now; try again", vf->spec().name));
    change->own_.push_back(vf->id());
    change->items_.push_back(std::move(item));
  }
  return change;
}

MemoryChange::~MemoryChange() {
  for (const VfId id : own_) busy_.erase(id);
}

void MemoryChange::Tell(Choose from, Choose to, Done done) {
  const auto result = std::make_shared<ApiResult<void>>();
  const auto over =
      WhenAll(items_.size(), [self = shared_from_this(), result, done = std::move(done)] { done(*result); });
  for (const Item& item : items_) {
    const VfMemory wanted = to(item);
    if (from(item) == wanted) {
      over();
      continue;
    }
    const auto told = [result, over](const ApiResult<void>& set) {
      if (!set && *result) *result = set;
      over();
    };
    const auto vf = item.vf.lock();
    vf != nullptr ? vf->SetQuotas(wanted, told) : told(ApiFail(ErrorKind::kConflict, "the vf was destroyed meanwhile"));
  }
}

void MemoryChange::Shrink(Done done) {
  Tell(&Before, &Between, [this, done = std::move(done)](const ApiResult<void>& shrunk) {
    if (shrunk) return done(shrunk);
    Undo([done, shrunk] { done(shrunk); });
  });
}

void MemoryChange::Commit() {
  for (const Item& item : items_) Settle(item, item.is, Larger(item.was, item.is));
}

void MemoryChange::Finish(Done done) {
  Tell(&Between, &After, [this, done = std::move(done)](const ApiResult<void>& told) {
    for (const Item& item : items_) Settle(item, item.is, item.is);
    done(told);
  });
}

void MemoryChange::Undo(std::function<void()> done) {
  // One that refused, or has ended, is as it was.
  Tell(&Between, &Before, [this, done = std::move(done)](const ApiResult<void>&) {
    for (const Item& item : items_) Settle(item, item.was, item.was);
    done();
  });
}

}  // namespace vgpud::daemon
