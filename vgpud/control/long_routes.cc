// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/long_routes.h"

#include <fmt/core.h>

#include <charconv>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "vgpud/control/stats_json.h"
#include "vgpud/history/day.h"
#include "vgpud/vf_registry.h"

namespace vgpud::daemon {
namespace {

using ExchangePtr = Control::ExchangePtr;

constexpr int64_t kMaxReportDays = 400;
constexpr uint64_t kMaxTraceUs = 600'000'000;

using Rows = std::vector<History::Day>;

// A day at a time, so that neither memory nor the loop depends on how many there are.
struct ReportSource : std::enable_shared_from_this<ReportSource> {
  using Deliver = Control::Exchange::Deliver;
  ReportSource(VfRegistry& from_registry, std::string first, std::string last)
      : registry(from_registry), from(std::move(first)), to(std::move(last)) {}
  VfRegistry& registry;
  const std::string from, to;
  std::string day = from;
  bool any_row = false;

  // Of `day`, in front of which comes what is in `piece`.
  void Take(const Rows& rows, std::string piece, const Deliver& deliver) {
    if (!rows.empty() && std::exchange(any_row, true)) piece += ',';
    piece += ReportRows(rows);
    if (day == to) return deliver(piece + ReportTail(from, to), false);
    piece.empty() ? Next(deliver) : deliver(std::move(piece), true);
  }
  void Next(const Deliver& deliver) {
    day = DayAfter(day);
    registry.ReadDay(day, [self = shared_from_this(), deliver](const ApiResult<Rows>& rows) {
      if (rows) return self->Take(*rows, {}, deliver);
      LOG(kError, "a report breaks off at {}: {}", self->day, rows.error().error);
      deliver("\n", false);  // no tail: the client sees that it is not whole
    });
  }
};

}  // namespace

void ReadReport(VfRegistry& registry, const Request& request, const ExchangePtr& exchange) {
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
  // Only the first day can still be answered with an error.
  registry.ReadReport(days[0], [exchange, &registry, from = days[0], to = days[1]](const ApiResult<Rows>& first) {
    if (!first) return AnswerError(exchange, first.error());
    auto source = std::make_shared<ReportSource>(registry, from, to);
    exchange->StreamLate("application/json", [source, begin = std::optional(*first)](const auto& deliver) mutable {
      if (const auto rows = std::exchange(begin, std::nullopt))
        source->Take(*rows, ReportHead(source->from, source->to), deliver);
      else
        source->Next(deliver);
    });
  });
}

void ReadTrace(VfRegistry& registry, const Request& request, const ExchangePtr& exchange) {
  const std::string text = request.Parameter("last_us");
  uint64_t last_us = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), last_us);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || last_us < 1 || last_us > kMaxTraceUs)
    return AnswerError(exchange, {ErrorKind::kInvalid,
                                  fmt::format("last_us {} is not a number of microseconds in 1..{} (10 minutes)",
                                              text.empty() ? "(missing)" : text, kMaxTraceUs),
                                  "last_us"});
  const auto gpu = registry.FindGpu(request.Parameter("gpu"));
  if (!gpu) return AnswerError(exchange, gpu.error());
  const auto dump = (*gpu)->telemetry().DumpTrace((*gpu)->name(), std::chrono::microseconds{last_us});
  exchange->Stream("application/json", [dump](std::string* piece) { return dump->Next(piece); });
}

}  // namespace vgpud::daemon
