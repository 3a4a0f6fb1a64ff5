// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/new_vf_routes.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <utility>

#include "vgpud/control/json.h"
#include "vgpud/control/permissions.h"
#include "vgpud/registry/vf_service.h"

namespace vgpud::daemon {
namespace {

using ExchangePtr = Control::ExchangePtr;
using Served = Control::Served;

// A VF costs processes, memory pages and lines of the log, whoever makes it and however soon it is destroyed.
std::optional<ApiError> WhyNotNewVf(const ExchangePtr& exchange, const Sharer& whose) {
  Rates& rates = exchange->shares().new_vfs();
  if (rates.TryTake(whose, 1, Now())) return std::nullopt;
  return ApiError{
      ErrorKind::kTooMany,
      fmt::format("{} makes too many VFs: {} at once and {} per second, as long as all users together make "
                  "no more than {} per second; try again in a second",
                  whose.name, rates.limit().each_at_once, rates.limit().each_per_second, rates.limit().all_per_second),
      {}};
}

// Whose users it is whose share a request takes: a tenant's, if the client can act for that one alone.
Sharer WhoAsks(const Request& request, const ExchangePtr& exchange) {
  return request.rights.tenant.empty() ? exchange->who() : Sharer::Tenant(request.rights.tenant);
}

// Who asks for it, and who answers for it.
void AskedFor(const Request& request, const ExchangePtr& exchange, VfWish* wish) {
  wish->whose = WhoAsks(request, exchange);
  if (exchange->who().privileged || !wish->spec.tenant.empty()) return;
  wish->spec.user = request.user;
  wish->on = [on = std::move(wish->on), user = request.user](const Profiles& profiles) {
    auto spec = on(profiles);
    if (spec) spec->user = user;
    return spec;
  };
}

}  // namespace

void CreateVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  auto wish = ParseVfWish(request.body, served.gpus.first().profiles(), request.rights.tenant);
  if (!wish) return AnswerError(exchange, wish.error());
  if (const auto why_not = WhyNotMade(request.rights, wish->spec)) return AnswerError(exchange, *why_not);
  if (const auto why_not = WhyNotOwner(wish->spec.owner, exchange->who().privileged, request.client))
    return AnswerError(exchange, *why_not);
  AskedFor(request, exchange, &*wish);
  if (request.dry_run())
    return AnswerChange(exchange,
                        request.Is("queue") ? served.admission.PreviewAlone(*wish) : served.admission.Preview(*wish));
  const auto answer = [exchange](const ApiResult<VfReport>& vf) {
    vf ? exchange->Answer(201, ToJson(*vf)) : AnswerError(exchange, vf.error());
  };
  if (const auto why_not = WhyNotNewVf(exchange, wish->whose)) return AnswerError(exchange, *why_not);
  if (!request.Is("queue")) return served.new_vfs.Create(*wish, answer);
  wish->why_not = [&reports = served.reports, now = request.rights_now, spec = wish->spec] {
    const Rights rights = now();
    const auto why_not = WhyNotPermitted(rights, false, "/v1/vfs", {}, reports);
    return why_not ? why_not : WhyNotMade(rights, spec);
  };
  auto leave = served.new_vfs.CreateInTurn(*wish, answer);
  exchange->Wait(std::move(leave));
}

void ResetVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  if (const auto why_not = WhyNotNewVf(exchange, WhoAsks(request, exchange))) return AnswerError(exchange, *why_not);
  served.lives.Reset(request.name, [exchange](const ApiResult<VfReport>& vf) {
    vf ? exchange->Answer(200, ToJson(*vf)) : AnswerError(exchange, vf.error());
  });
}

}  // namespace vgpud::daemon
