// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/config_routes.h"

#include <fmt/core.h>

#include "vgpud/control/json.h"
#include "vgpud/control/json_parts.h"

namespace vgpud::daemon {
namespace {

using ExchangePtr = Control::ExchangePtr;

void Refuse(const ExchangePtr& exchange, const ApiError& error) {
  exchange->Answer(HttpStatus(error.kind), ToJson(error));
}

void Show(Configuration& configuration, bool, const ExchangePtr& exchange) {
  auto list = OrderedJson::array();
  for (const Configuration::Value& value : configuration.Show()) {
    OrderedJson json{{"key", value.key}, {"value", value.text}, {"from", value.from}};
    if (value.from == Configuration::kFromLive) json["configured"] = value.told;
    list.push_back(std::move(json));
  }
  exchange->Answer(200, Finish({{"values", list}}));
}

void Diff(Configuration& configuration, bool, const ExchangePtr& exchange) {
  const auto differences = configuration.Diff();
  if (!differences) return Refuse(exchange, differences.error());
  auto list = OrderedJson::array();
  for (const Configuration::Difference& each : *differences)
    list.push_back({{"key", each.key}, {"running", each.running}, {"configured", each.told}, {"effect", each.effect}});
  exchange->Answer(200, Finish({{"differences", list}}));
}

OrderedJson List(const std::vector<ConfigChange>& changes) {
  auto list = OrderedJson::array();
  for (const ConfigChange& each : changes)
    list.push_back({{"key", each.key}, {"old", each.before}, {"new", each.after}});
  return list;
}

void Reload(Configuration& configuration, bool dry_run, const ExchangePtr& exchange) {
  configuration.Reload(dry_run, [exchange](const ApiResult<Configuration::Reloaded>& reloaded) {
    if (!reloaded) return Refuse(exchange, reloaded.error());
    OrderedJson json{{"now", List(reloaded->now)}, {"at_restart", List(reloaded->at_restart)}};
    if (reloaded->round) json["round"] = *reloaded->round;
    json["dry_run"] = !reloaded->round;
    exchange->Answer(200, Finish(std::move(json)));
  });
}

void ListTenants(Configuration& configuration, bool, const ExchangePtr& exchange) {
  exchange->Answer(200, ToJson(configuration.limits().List()));
}

void ShowCalendar(Configuration& configuration, bool, const ExchangePtr& exchange) {
  auto list = OrderedJson::array();
  OrderedJson json = OrderedJson::object();
  if (const CalendarKeeper* calendar = configuration.calendar()) {
    for (const CalendarKeeper::PeriodReport& each : calendar->Report())
      list.push_back({{"name", each.name}, {"when", each.when}, {"holds", each.holds}, {"settings", each.settings}});
    if (!calendar->problem().empty()) json["problem"] = calendar->problem();
  }
  json["periods"] = std::move(list);
  exchange->Answer(200, Finish(std::move(json)));
}

constexpr struct {
  const char* method;
  const char* path;
  void (*handle)(Configuration&, bool dry_run, const ExchangePtr&);
  bool may_be_dry;
} kRoutes[] = {
    {"GET", "/v1/config", &Show, false},           {"GET", "/v1/config/diff", &Diff, false},
    {"POST", "/v1/config/reload", &Reload, true},  {"GET", "/v1/tenants", &ListTenants, false},
    {"GET", "/v1/calendar", &ShowCalendar, false},
};

}  // namespace

bool AnswerConfig(Configuration& configuration, const std::string& method, const std::string& path,
                  const std::string& query, const ExchangePtr& exchange) {
  for (const auto& route : kRoutes) {
    if (path != route.path) continue;
    const bool dry = route.may_be_dry && query == "dry_run=1";
    if (method != route.method)
      Refuse(exchange, {ErrorKind::kWrongMethod, fmt::format("{} does not take this method", path), {}});
    else if (!query.empty() && !dry && !(route.may_be_dry && query == "dry_run=0"))
      Refuse(exchange, {ErrorKind::kInvalid,
                        fmt::format("{} takes no parameters{}", path, route.may_be_dry ? " but dry_run=1" : ""),
                        {}});
    else
      route.handle(configuration, dry, exchange);
    return true;
  }
  return false;
}

}  // namespace vgpud::daemon
