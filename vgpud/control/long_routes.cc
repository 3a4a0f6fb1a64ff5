// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/long_routes.h"

#include <fmt/core.h>

#include <charconv>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "vgpud/control/json_parts.h"
#include "vgpud/control/permissions.h"
#include "vgpud/control/stats_json.h"
#include "vgpud/events/chronicle.h"
#include "vgpud/history/day.h"
#include "vgpud/host/topology.h"
#include "vgpud/registry/reports.h"
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

ApiResult<PlacePtr> TakePlace(const ExchangePtr& exchange, Places& places) {
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
  wish->by = request.by();
  if (exchange->who().privileged || !wish->spec.tenant.empty()) return;
  wish->spec.user = request.user;
  wish->on = [on = std::move(wish->on), user = request.user](const Profiles& profiles) {
    auto spec = on(profiles);
    if (spec) spec->user = user;
    return spec;
  };
}

using Deliver = Control::Exchange::Deliver;

constexpr size_t kPieceBytes = 64 << 10;
constexpr Ns kSignOfLifeEvery = std::chrono::seconds{5};

std::string Line(const OrderedJson& json) {
  return json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

class Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(const ExchangePtr& exchange, std::shared_ptr<RecordLog> log, const RecordLog::Query& query, PlacePtr place)
      : exchange_(exchange), reader_(std::move(log), query), place_(std::move(place)) {}
  // Waits for a record, then passes it on.
  void Next(const Deliver& deliver) {
    waiting_ = deliver;
    reader_.OnAdded([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Look();
    });
    if (const auto exchange = exchange_.lock())
      exchange->Later(kSignOfLifeEvery, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->Pass("\n");
      });
    Look();
  }

 private:
  void Look() {
    if (waiting_ == nullptr) return;
    const RecordLog::Page page = reader_.Next(kPieceBytes);
    std::string text;
    if (page.missed != 0) text += Line({{"missed", page.missed}});
    for (const Record& record : page.records) text += Line(Describe(record));
    if (!text.empty()) Pass(std::move(text));
  }
  void Pass(std::string text) {
    if (const auto deliver = std::exchange(waiting_, nullptr)) deliver(std::move(text), true);
  }

  const std::weak_ptr<Control::Exchange> exchange_;
  RecordLog::Reader reader_;
  const PlacePtr place_;
  Deliver waiting_;
};

ApiResult<uint64_t> After(const Request& request) {
  const std::string text = request.Parameter("after");
  uint64_t after = 0;
  if (text.empty()) return after;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), after);
  if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size()) return after;
  return ApiFail(ErrorKind::kInvalid,
                 fmt::format("after {} is not a number: take \"number\" of the last record that you have, or \"next\" "
                             "of the last answer",
                             text.substr(0, 40)),
                 "after");
}

// `list`: what the answer calls the records.
void Read(const std::shared_ptr<RecordLog>& log, const char* list, RecordLog::Query query, const Request& request,
          const ExchangePtr& exchange) {
  const auto after = After(request);
  if (!after) return AnswerError(exchange, after.error());
  query.after = *after;
  if (!request.Is("follow")) {
    const RecordLog::Page page = log->Read(query);
    return exchange->Answer(
        200, Finish({{list, DescribeRecords(page.records)}, {"missed", page.missed}, {"next", page.next}}));
  }
  auto place = TakePlace(exchange, exchange->shares().followers());
  if (!place) return AnswerError(exchange, place.error());
  const auto follower = std::make_shared<Follower>(exchange, log, query, std::move(*place));
  exchange->StreamOn("application/x-ndjson", [follower](const Deliver& deliver) { follower->Next(deliver); });
}

constexpr uint64_t kMostMs = 24 * 3'600'000;
constexpr Ns kLookEvery = std::chrono::milliseconds{50};

// Whether `vf` is as it is waited for, or will never be so: then with an error.
using Judgement = ApiResult<bool>;
using Vf = ApiResult<VfReport>;

Judgement NeedsSomebody(const VfReport& vf) {
  return ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" is {}: {}", vf.name, vf.state, vf.reason), "for");
}

Judgement IsReady(const Vf& vf) {
  if (!vf) return false;
  for (const char* const state : {"failed", "lost", "parked"})
    if (vf->state == state) return NeedsSomebody(*vf);
  return vf->state == "ready";
}

Judgement IsIdle(const Vf& vf) {
  if (!vf) return tl::unexpected(vf.error());
  if (vf->state == "lost") return NeedsSomebody(*vf);
  return vf->state != "starting" && vf->executors == 0;
}

Judgement IsGone(const Vf& vf) { return !vf; }

struct Goal {
  std::string_view name;
  Judgement (*judge)(const Vf& vf);
};
constexpr Goal kGoals[] = {{"ready", &IsReady}, {"idle", &IsIdle}, {"gone", &IsGone}};

const Goal* FindGoal(const std::string& name) {
  for (const Goal& goal : kGoals)
    if (goal.name == name) return &goal;
  return nullptr;
}

std::string HowItIs(const Vf& vf) {
  if (!vf) return "there is no such VF";
  const uint32_t programs = vf->executors;
  return fmt::format("it is {} and {} program{}", vf->state, programs, programs == 1 ? " uses it" : "s use it");
}

// Looks again and again, until it is as it should be or the client has left.
class Wait : public std::enable_shared_from_this<Wait> {
 public:
  Wait(const Reports& reports, const std::string& vf, const Goal& goal, const ExchangePtr& exchange)
      : reports_(reports), vf_(vf), goal_(goal), exchange_(exchange) {}
  void Begin(EventLoop& loop, std::optional<Ns> limit) {
    began_ = Now();
    limit_ = limit;
    again_ = loop.Timer([self = shared_from_this()] { self->Look(); });
    exchange_->Wait([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->again_.reset();
    });
    if (again_ != nullptr) Look();  // else the client has left already
  }

 private:
  void Look() {
    const Vf vf = reports_.OfVf(vf_);
    const Judgement is_so = goal_.judge(vf);
    if (!is_so) return End([&] { AnswerError(exchange_, is_so.error()); });
    if (*is_so)
      return End([&] { exchange_->Answer(200, vf ? ToJson(*vf) : Finish({{"name", vf_}, {"state", "gone"}})); });
    const Ns waited = Now() - began_;
    if (!limit_ || waited < *limit_) return again_->Arm(kLookEvery);
    End([&] {
      AnswerError(exchange_, {ErrorKind::kTimedOut,
                              fmt::format("vf \"{}\" is not {} after {} ms: {}", vf_, goal_.name,
                                          *limit_ / std::chrono::milliseconds{1}, HowItIs(vf)),
                              {}});
    });
  }
  template <class Answer>
  void End(const Answer& answer) {
    const auto keep = shared_from_this();
    again_.reset();
    answer();
  }

  const Reports& reports_;
  const std::string vf_;
  const Goal& goal_;
  const ExchangePtr exchange_;
  TimePoint began_{};
  std::optional<Ns> limit_;
  EventLoop::WatchPtr again_;
};

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
  const auto place = TakePlace(exchange, exchange->shares().long_answers());
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
  const auto place = TakePlace(exchange, exchange->shares().long_answers());
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
  served.lives.Reset(request.name, request.Is("force"), request.by(), [exchange](const ApiResult<VfReport>& vf) {
    vf ? exchange->Answer(200, ToJson(*vf)) : AnswerError(exchange, vf.error());
  });
}

void ReadEvents(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  Read(served.chronicle.events(), "events", {.vf = request.Parameter("vf")}, request, exchange);
}

void ReadLog(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto& lines = served.chronicle.lines();
  const auto vf = served.reports.OfVf(request.name);
  if (!vf && lines->LatestOf(request.name, 1).empty()) return AnswerError(exchange, vf.error());
  Read(lines, "lines", {.vf = request.name}, request, exchange);
}

void WaitForVf(const Control::Served& served, const Request& request, const ExchangePtr& exchange) {
  const Goal* const goal = FindGoal(request.Parameter("for"));
  if (goal == nullptr)
    return AnswerError(exchange, {ErrorKind::kInvalid,
                                  fmt::format("for {} is unknown: allowed is ready, idle or gone",
                                              request.Parameter("for").substr(0, 40)),
                                  "for"});
  std::optional<Ns> limit;
  if (const std::string text = request.Parameter("timeout_ms"); !text.empty()) {
    uint64_t ms = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), ms);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || ms > kMostMs)
      return AnswerError(exchange, {ErrorKind::kInvalid,
                                    fmt::format("timeout_ms {} is not a number of milliseconds up to {} (a day)",
                                                text.substr(0, 40), kMostMs),
                                    "timeout_ms"});
    limit = std::chrono::milliseconds{ms};
  }
  std::make_shared<Wait>(served.reports, request.name, *goal, exchange)->Begin(exchange->loop(), limit);
}

}  // namespace vgpud::daemon
