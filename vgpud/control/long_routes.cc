// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/long_routes.h"

#include <fmt/core.h>

#include <charconv>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "vgpud/control/permissions.h"
#include "vgpud/control/stats_json.h"
#include "vgpud/history/day.h"
#include "vgpud/host/topology.h"
#include "vgpud/registry/vf_service.h"

namespace vgpud::daemon {
namespace {

using ExchangePtr = Control::ExchangePtr;

constexpr int64_t kMaxReportDays = 400;
constexpr uint64_t kMaxTraceUs = 600'000'000;

constexpr size_t kRowsOfAPage = 200;

// Of a report or a trace; empty when somebody else has got it.
using PlacePtr = std::shared_ptr<Places::Place>;

// The client has taken what there was.
void Use(const PlacePtr& place) {
  if (*place != nullptr) (*place)->used = Now();
}

// A page at a time, made when the client has taken the one before: neither memory nor the loop depends on how many
// there are. The rows are read, and become text, on the histories' own threads. With several GPUs it goes on day by
// day, to keep the order of days.
struct ReportSource : std::enable_shared_from_this<ReportSource> {
  using Deliver = Control::Exchange::Deliver;
  using Page = HistoryKeeper::Page;
  ReportSource(const ServedGpus& of_gpus, std::string first, std::string last, PlacePtr held)
      : gpus(of_gpus), from(std::move(first)), to(std::move(last)), place(std::move(held)) {}
  const ServedGpus& gpus;
  const std::string from, to;
  const PlacePtr place;
  std::string day = from;
  size_t gpu = 0;  // whose rows come next
  History::Place after = {};
  bool any_row = false;
  bool over = false;

  bool several() const { return gpus.several(); }
  void Read(std::function<void(Result<Page>)> done) const {
    ServedGpu& of = *gpus.all()[gpu];
    const HistoryKeeper::Query query{day, several() ? day : to, after, kRowsOfAPage};
    of.telemetry().Read(
        query, [name = several() ? of.name() : std::string()](const auto& rows) { return ReportRows(rows, name); },
        std::move(done));
  }
  // What of the report this page is, with `text` in front.
  std::string Take(Page page, std::string text) {
    if (!page.text.empty() && std::exchange(any_row, true)) text += ',';
    text += page.text;
    Step(page.next);
    return over ? text + ReportTail(from, to) : text;
  }
  void Step(std::optional<History::Place> next) {
    after = next.value_or(History::Place{});
    if (next || ++gpu < gpus.all().size()) return;
    gpu = 0;
    over = !several() || day == to;
    if (!over) day = DayAfter(day);
  }
  void Next(const Deliver& deliver) {
    Use(place);
    Read([self = shared_from_this(), deliver](Result<Page> page) {
      if (page) {
        std::string text = self->Take(std::move(*page), {});
        return text.empty() ? self->Next(deliver) : deliver(std::move(text), !self->over);
      }
      LOG(kError, "a report breaks off at {}: {}", self->day, page.error().context);
      deliver("\n", false);  // no tail: the client sees that it is not whole
    });
  }
};

ApiResult<PlacePtr> TakePlace(const ExchangePtr& exchange) {
  Places& places = exchange->shares().long_answers();
  auto place = std::make_shared<Places::Place>();
  const auto yield = [weak = std::weak_ptr(exchange), holds = place.get(), what = places.limit().what] {
    const auto keep = weak.lock();
    holds->reset();
    if (keep != nullptr)
      keep->BreakOff({ErrorKind::kTooMany, fmt::format("others ask for {}, too: try again later", what), {}});
  };
  *place = places.TakeOrDisplace(exchange->who(), 1, Now(), yield);
  if (*place == nullptr) return ApiFail(ErrorKind::kTooMany, places.WhyNone(exchange->who()));
  return place;
}

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

// A node that neither this host nor any of its GPUs has.
std::optional<ApiError> WhyNotNode(const Control::Served& served, std::optional<int> wanted) {
  const Topology* const topology = served.reports.topology();
  if (!wanted || topology == nullptr || topology->Find(*wanted) != nullptr) return std::nullopt;
  for (const auto& gpu : served.gpus.all())
    if (gpu->config().numa_node == wanted) return std::nullopt;
  std::string there;
  for (const NumaNode& node : topology->nodes) there += fmt::format("{}{}", there.empty() ? "" : ", ", node.number);
  return ApiError{ErrorKind::kInvalid,
                  fmt::format("numa_node {} is not a node of this host: it has {}", *wanted, there), "numa_node"};
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

void ReadReport(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  std::string days[2];
  const char* const keys[] = {"from", "to"};
  for (int i = 0; i < 2; ++i) {
    std::string asked = request.Parameter(keys[i]);
    if (asked.empty()) asked = request.Parameter(keys[1 - i]);
    const auto day = ParseDay(asked.empty() ? DayOf(::time(nullptr)) : asked);
    if (!day)
      return AnswerError(exchange, {ErrorKind::kInvalid, fmt::format("{} {}", keys[i], day.error().context), keys[i]});
    days[i] = *day;
  }
  if (days[0] > days[1])
    return AnswerError(exchange,
                       {ErrorKind::kInvalid, fmt::format("from {} is after to {}", days[0], days[1]), "from"});
  if (DaysOf(days[0], days[1]) > kMaxReportDays)
    return AnswerError(exchange, {ErrorKind::kInvalid,
                                  fmt::format("from {} to {} are {} days, more than {}: ask for fewer at once", days[0],
                                              days[1], DaysOf(days[0], days[1]), kMaxReportDays),
                                  "to"});
  const auto place = TakePlace(exchange);
  if (!place) return AnswerError(exchange, place.error());
  const auto source = std::make_shared<ReportSource>(served.gpus, days[0], days[1], *place);
  served.gpus.RefreshHistories([exchange, source] {
    // Only what is before the first page can still be answered with an error.
    source->Read([exchange, source](Result<HistoryKeeper::Page> first) {
      if (!first) return AnswerError(exchange, {ErrorKind::kUnavailable, first.error().context, {}});
      auto begin = std::make_shared<std::string>(source->Take(std::move(*first), ReportHead(source->from, source->to)));
      exchange->StreamLate("application/json", [source, begin](const auto& deliver) {
        begin->empty() ? source->Next(deliver) : deliver(std::exchange(*begin, {}), !source->over);
      });
    });
  });
}

void ReadTrace(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  const std::string text = request.Parameter("last_us");
  uint64_t last_us = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), last_us);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || last_us < 1 || last_us > kMaxTraceUs)
    return AnswerError(exchange, {ErrorKind::kInvalid,
                                  fmt::format("last_us {} is not a number of microseconds in 1..{} (10 minutes)",
                                              text.empty() ? "(missing)" : text, kMaxTraceUs),
                                  "last_us"});
  const auto gpu = served.gpus.Find(request.Parameter("gpu"));
  if (!gpu) return AnswerError(exchange, gpu.error());
  const auto place = TakePlace(exchange);
  if (!place) return AnswerError(exchange, place.error());
  const auto dump = (*gpu)->telemetry().DumpTrace((*gpu)->name(), std::chrono::microseconds{last_us});
  exchange->Stream("application/json", [dump, place = *place](std::string* piece) {
    Use(place);
    return dump->Next(piece);
  });
}

void CreateVf(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  auto wish = ParseVfWish(request.body, served.gpus.first().profiles(), request.rights.tenant);
  if (!wish) return AnswerError(exchange, wish.error());
  if (const auto why_not = WhyNotMade(request.rights, wish->spec)) return AnswerError(exchange, *why_not);
  if (const auto why_not = WhyNotOwner(wish->spec.owner, exchange->who().privileged, request.client))
    return AnswerError(exchange, *why_not);
  if (const auto why_not = WhyNotNode(served, wish->spec.numa_node)) return AnswerError(exchange, *why_not);
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

void ResetVf(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  if (const auto why_not = WhyNotNewVf(exchange, WhoAsks(request, exchange))) return AnswerError(exchange, *why_not);
  served.lives.Reset(request.name, request.Is("force"), [exchange](const ApiResult<VfReport>& vf) {
    vf ? exchange->Answer(200, ToJson(*vf)) : AnswerError(exchange, vf.error());
  });
}

}  // namespace vgpud::daemon
