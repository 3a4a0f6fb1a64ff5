// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/control.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/foreign_fd.h"
#include "base/log.h"
#include "vgpud/control/config_routes.h"
#include "vgpud/control/json.h"
#include "vgpud/control/listen.h"
#include "vgpud/control/long_routes.h"
#include "vgpud/control/metrics.h"
#include "vgpud/control/permissions.h"
#include "vgpud/control/prometheus_text.h"
#include "vgpud/control/stats_json.h"
#include "vgpud/control/topology_json.h"
#include "vgpud/live/configuration.h"
#include "vgpud/model/api.h"
#include "vgpud/registry/vf_service.h"

namespace vgpud::daemon {
namespace {

constexpr int kMaxHeaderBytes = 16 * 1024;
constexpr int kClientTimeoutSeconds = 10;
constexpr Ns kLookForMemoryEvery = std::chrono::milliseconds{200};
constexpr Ns kScraperStay = std::chrono::seconds{30};
constexpr size_t kRecentEvents = 5;
constexpr const char* kMetricsPath = "/metrics";

using ExchangePtr = Control::ExchangePtr;
using Served = Control::Served;

void ApplyToVf(const Served& served, const Request& request, const VfPatch& patch, const ExchangePtr& exchange) {
  served.changes.MakeOfVf(request.name, patch, request.order(),
                          [exchange](const ApiResult<ChangeReport>& change) { AnswerChange(exchange, change); });
}

// ?if_revision=NUMBER: what the client has seen. The error says that somebody else was there first; `again` shows what
// is there now.
std::optional<ApiError> WhyNotRevision(const Request& request, const std::string& what, uint64_t is,
                                       const std::string& again) {
  const std::string seen = request.Parameter("if_revision");
  if (seen.empty() || seen == std::to_string(is)) return std::nullopt;
  return ApiError{ErrorKind::kConflict,
                  fmt::format("{} has been changed meanwhile: it has revision {}, not {}; nothing was done, look at it "
                              "again with {}",
                              what, is, seen.substr(0, 40), again),
                  "if_revision"};
}

// Who would lose the VF, in words; empty: nobody.
std::string UsersNow(const VfReport& vf) {
  std::string users;
  if (vf.client_connected)
    users = vf.domain.name.empty() ? "a VM has it" : fmt::format("domain {} has it", vf.domain.name);
  if (vf.executors != 0)
    users += fmt::format("{}{} on it", users.empty() ? "" : ", and ",
                         vf.executors == 1 ? "1 program runs" : fmt::format("{} programs run", vf.executors));
  return users;
}

// Of /v1/vfs/NAME; the handler answers for a VF that is not there or is lost.
std::optional<ApiError> WhyNotRevisionOfVf(const Served& served, const Request& request) {
  const auto vf = served.reports.OfVf(request.name);
  if (!vf || vf->revision == 0) return std::nullopt;
  return WhyNotRevision(request, fmt::format("vf \"{}\"", request.name), vf->revision, "vgpuctl show " + request.name);
}

// ?if_unused=1: only if no VM and no program has it.
std::optional<ApiError> WhyNotDestroyed(const Served& served, const Request& request) {
  if (auto why_not = WhyNotRevisionOfVf(served, request)) return why_not;
  const auto vf = served.reports.OfVf(request.name);
  if (!vf || !request.Is("if_unused")) return std::nullopt;
  const std::string users = UsersNow(*vf);
  if (users.empty()) return std::nullopt;
  return ApiError{ErrorKind::kConflict,
                  fmt::format("vf \"{}\" is in use: {}; end what uses it, or take it away with vgpuctl destroy {} "
                              "--force",
                              request.name, users, request.name),
                  "if_unused"};
}

std::optional<ApiError> WhyNotRevisionOfGpu(const Served& served, const Request& request) {
  const auto gpu = served.gpus.Find(request.name);
  if (!gpu) return std::nullopt;
  return WhyNotRevision(request, "gpu " + (*gpu)->name(), (*gpu)->revision(), "vgpuctl gpu");
}

void ListVfs(const Served& served, const Request&, const ExchangePtr& exchange) {
  exchange->Answer(200, ToJson(served.reports.OfVfs()));
}

// With what its scheduler thread counts; one that is lost has none.
void ShowVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto vf = served.reports.OfVf(request.name);
  if (!vf) return AnswerError(exchange, vf.error());
  const auto recent = served.chronicle.events()->LatestOf(request.name, kRecentEvents);
  if (vf->channel_socket.empty()) return exchange->Answer(200, ToJson(*vf, recent));
  using All = std::vector<StatsReport>;
  served.reports.ReadStats(request.name, "", [exchange, recent](const ApiResult<All>& stats) {
    stats ? exchange->Answer(200, ToJson(stats->front().vfs.front().vf, recent)) : AnswerError(exchange, stats.error());
  });
}

void ChangeVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto patch = ParseVfPatch(request.body);
  if (!patch) return AnswerError(exchange, patch.error());
  ApplyToVf(served, request, *patch, exchange);
}

void PauseVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  ApplyToVf(served, request, {.knobs = {}, .paused = true}, exchange);
}

void ResumeVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  ApplyToVf(served, request, {.knobs = {}, .paused = false}, exchange);
}

void ChangeGpu(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto patch = ParseGpuPatch(request.body);
  if (!patch) return AnswerError(exchange, patch.error());
  served.changes.MakeOfGpu(request.name, *patch, request.order(),
                           [exchange](const ApiResult<ChangeReport>& change) { AnswerChange(exchange, change); });
}

void ChangeAll(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto patch = ParseSettingsPatch(request.body);
  if (!patch) return AnswerError(exchange, patch.error());
  served.changes.Make(*patch, request.order(),
                      [exchange](const ApiResult<ChangeReport>& change) { AnswerChange(exchange, change); });
}

void DestroyVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  served.lives.Destroy(request.name, request.Parameter("uuid"), request.by(),
                       [exchange](const ApiResult<VfReport>& vf) {
                         vf ? exchange->Answer(200, ToJson(*vf)) : AnswerError(exchange, vf.error());
                       });
}

// Whose it is.
void GiveVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto domain = ParseVfDomain(request.body);
  if (!domain) return AnswerError(exchange, domain.error());
  if (const auto why_not = WhyNotInDomain(request.name)) return AnswerError(exchange, *why_not);
  const auto vf = served.changes.SetDomain(request.name, *domain, request.by());
  vf ? exchange->Answer(200, ToJson(*vf)) : AnswerError(exchange, vf.error());
}

void TakeVf(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto vf = served.changes.SetDomain(request.name, {}, request.by());
  vf ? exchange->Answer(200, ToJson(*vf)) : AnswerError(exchange, vf.error());
}

void ReadStats(const Served& served, const Request& request, const ExchangePtr& exchange) {
  using All = std::vector<StatsReport>;
  const auto answer = [exchange](const ApiResult<All>& stats) {
    stats ? exchange->Answer(200, ToJson(*stats)) : AnswerError(exchange, stats.error());
  };
  served.reports.ReadStats(request.Parameter("vf"), request.Parameter("gpu"), exchange->Paced<ApiResult<All>>(answer));
}

void ReadMetrics(const Served& served, const Request&, const ExchangePtr& exchange) {
  using All = std::vector<StatsReport>;
  const auto answer = [exchange](const ApiResult<All>& stats) {
    stats ? exchange->Answer(200, MetricsText(*stats), PrometheusText::kContentType)
          : AnswerError(exchange, stats.error());
  };
  served.reports.ReadStats("", "", exchange->Paced<ApiResult<All>>(answer));
}

// Own ones are the same for all GPUs; the built-in ones are parts of the memory of the GPU.
void ListProfiles(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const std::string name = request.Parameter("gpu");
  const auto gpu = name.empty() ? ApiResult<ServedGpu*>(&served.gpus.first()) : served.gpus.Find(name);
  gpu ? exchange->Answer(200, ToJson((*gpu)->profiles())) : AnswerError(exchange, gpu.error());
}

void ListProcesses(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto processes = served.reports.OfProcesses(request.Parameter("vf"));
  processes ? exchange->Answer(200, ToJson(*processes)) : AnswerError(exchange, processes.error());
}

void ListGpus(const Served& served, const Request&, const ExchangePtr& exchange) {
  exchange->Answer(200, ToJson(served.reports.OfGpus(), served.new_vfs.waiting()));
}

void DescribeTopology(const Served& served, const Request&, const ExchangePtr& exchange) {
  static const Topology kNotLookedAt;
  const Topology* const topology = served.reports.topology();
  exchange->Answer(200, ToJson(topology != nullptr ? *topology : kNotLookedAt, served.reports.OfGpus()));
}

void DescribeGpu(const Served& served, const Request& request, const ExchangePtr& exchange) {
  const auto gpu = served.gpus.Find(request.name);
  if (!gpu) return AnswerError(exchange, gpu.error());
  served.reports.AskGpu(**gpu, [exchange](const ApiResult<GpuReport>& report) {
    report ? exchange->Answer(200, ToJson(*report)) : AnswerError(exchange, report.error());
  });
}

// "*" stands for one path part, the name of a VF or GPU. `parameters`: the keys that ?KEY=VALUE may have, with spaces
// between.
struct Route {
  evhttp_cmd_type method;
  std::string_view path;
  void (*handle)(const Served&, const Request&, const ExchangePtr&);
  std::string_view parameters = "";
  std::optional<ApiError> (*why_not)(const Served&, const Request&) = nullptr;  // asked first
};
constexpr Route kRoutes[] = {
    {EVHTTP_REQ_GET, "/v1/vfs", &ListVfs},
    {EVHTTP_REQ_POST, "/v1/vfs", &CreateVf, "dry_run queue"},
    {EVHTTP_REQ_GET, "/v1/vfs/*", &ShowVf},
    {EVHTTP_REQ_PATCH, "/v1/vfs/*", &ChangeVf, "dry_run if_revision", &WhyNotRevisionOfVf},
    {EVHTTP_REQ_DELETE, "/v1/vfs/*", &DestroyVf, "uuid if_revision if_unused", &WhyNotDestroyed},
    {EVHTTP_REQ_POST, "/v1/vfs/*/reset", &ResetVf, "force"},
    {EVHTTP_REQ_POST, "/v1/vfs/*/pause", &PauseVf, "dry_run if_revision", &WhyNotRevisionOfVf},
    {EVHTTP_REQ_POST, "/v1/vfs/*/resume", &ResumeVf, "dry_run if_revision", &WhyNotRevisionOfVf},
    {EVHTTP_REQ_POST, "/v1/vfs/*/domain", &GiveVf},
    {EVHTTP_REQ_DELETE, "/v1/vfs/*/domain", &TakeVf},
    {EVHTTP_REQ_GET, "/v1/stats", &ReadStats, "vf gpu"},
    {EVHTTP_REQ_GET, "/v1/profiles", &ListProfiles, "gpu"},
    {EVHTTP_REQ_GET, "/v1/gpus", &ListGpus},
    {EVHTTP_REQ_GET, "/v1/topo", &DescribeTopology},
    {EVHTTP_REQ_GET, "/v1/gpus/*", &DescribeGpu},
    {EVHTTP_REQ_PATCH, "/v1/gpus/*", &ChangeGpu, "dry_run if_revision", &WhyNotRevisionOfGpu},
    {EVHTTP_REQ_GET, "/v1/gpu", &DescribeGpu},
    {EVHTTP_REQ_PATCH, "/v1/gpu", &ChangeGpu, "dry_run if_revision", &WhyNotRevisionOfGpu},
    {EVHTTP_REQ_PATCH, "/v1/settings", &ChangeAll, "dry_run"},
    {EVHTTP_REQ_GET, kMetricsPath, &ReadMetrics},
    {EVHTTP_REQ_GET, "/v1/processes", &ListProcesses, "vf"},
    {EVHTTP_REQ_GET, "/v1/events", &ReadEvents, "vf after follow"},
    {EVHTTP_REQ_GET, "/v1/vfs/*/log", &ReadLog, "after follow"},
    {EVHTTP_REQ_GET, "/v1/vfs/*/wait", &WaitForVf, "for timeout_ms"},
    {EVHTTP_REQ_GET, "/v1/report", &ReadReport, "from to"},
    {EVHTTP_REQ_GET, "/v1/trace", &ReadTrace, "last_us gpu"},
};

bool Matches(std::string_view pattern, std::string_view path, std::string* name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == path;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (path.size() <= head.size() + tail.size() || !path.starts_with(head) || !path.ends_with(tail)) return false;
  const std::string_view part = path.substr(head.size(), path.size() - head.size() - tail.size());
  if (part.find('/') != std::string_view::npos) return false;
  *name = std::string(part);
  return true;
}

std::string Body(evhttp_request* request) {
  evbuffer* buffer = evhttp_request_get_input_buffer(request);
  std::string body(evbuffer_get_length(buffer), '\0');
  evbuffer_copyout(buffer, body.data(), body.size());
  return body;
}

// libevent does not read the body of a GET.
bool HasUnreadBody(evhttp_request* request) {
  if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) return false;
  const evkeyvalq* headers = evhttp_request_get_input_headers(request);
  const char* length = evhttp_find_header(headers, "Content-Length");
  return evhttp_find_header(headers, "Transfer-Encoding") != nullptr ||
         (length != nullptr && std::string_view(length) != "0");
}

// `known`: keys with spaces between. What is not understood could change what the client wants: it is an error.
ApiResult<std::map<std::string, std::string>> Query(const char* query, std::string_view known) {
  std::map<std::string, std::string> values;
  if (query == nullptr || *query == '\0') return values;
  evkeyvalq pairs{};
  if (evhttp_parse_query_str(query, &pairs) != 0)
    return ApiFail(ErrorKind::kInvalid,
                   "what follows the ? of the path is not KEY=VALUE&...: write it like ?dry_run=1");
  std::string wrong;
  bool twice = false;
  for (const evkeyval* pair = pairs.tqh_first; pair != nullptr && wrong.empty(); pair = pair->next.tqe_next) {
    const std::string key = pair->key;
    const bool is_known =
        !key.empty() && fmt::format(" {} ", known).find(fmt::format(" {} ", key)) != std::string::npos;
    twice = is_known && !values.emplace(key, pair->value).second;
    if (!is_known || twice) wrong = key.empty() ? "(empty)" : key;
  }
  evhttp_clear_headers(&pairs);
  if (wrong.empty()) return values;
  if (twice)
    return ApiFail(ErrorKind::kInvalid, fmt::format("parameter {} is given twice: give it once", wrong), wrong);
  return ApiFail(ErrorKind::kInvalid,
                 fmt::format("unknown parameter \"{}\": this request takes {}; nothing was done", wrong.substr(0, 40),
                             known.empty() ? std::string_view("none") : known),
                 wrong.substr(0, 40));
}

bufferevent* StreamOf(evhttp_request* request) {
  return evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
}

// Empty: one that no path about the configuration takes.
const char* MethodOf(evhttp_request* request) {
  const evhttp_cmd_type command = evhttp_request_get_command(request);
  return command == EVHTTP_REQ_GET ? "GET" : command == EVHTTP_REQ_POST ? "POST" : "";
}

}  // namespace

Control::Served::Served(VfService& service)
    : gpus(service.gpus()),
      admission(service.admission()),
      new_vfs(service.new_vfs()),
      lives(service.lives()),
      changes(service.changes()),
      reports(service.reports()),
      chronicle(service.chronicle()) {}

Control::Control(EventLoop& loop, const Served& served, const ClientLimits& limits, Ns longest_stay)
    : loop_(loop),
      served_(served),
      http_(evhttp_new(loop.base())),
      user_of_(limits.user),
      shares_(limits),
      door_(loop, http_, {.places = limits.connections, .stay = longest_stay},
            {.sharer = limits.sharer, .why_not = [this](int fd) { return WhyNotLetIn(fd); }}),
      pacer_(loop) {
  CHECK(http_ != nullptr);
  evhttp_set_allowed_methods(http_, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_PATCH | EVHTTP_REQ_DELETE);
  evhttp_set_max_body_size(http_, static_cast<ssize_t>(control::kMaxBodyBytes));
  evhttp_set_max_headers_size(http_, kMaxHeaderBytes);
  evhttp_set_timeout(http_, kClientTimeoutSeconds);
  evhttp_set_gencb(http_, &Control::OnRequest, this);
}

Control::~Control() {
  for (const auto& [connection, open] : open_) {
    evhttp_connection_set_closecb(connection, nullptr, nullptr);
    if (const auto exchange = open.exchange.lock()) exchange->GiveUp();
  }
  evhttp_free(http_);
}

Result<std::unique_ptr<Control>> Control::Serve(EventLoop& loop, const Served& served, const std::string& socket_path,
                                                Configuration* configuration, UniqueFd passed,
                                                const ClientLimits& limits) {
  if (passed) TRY(CheckListensAt(passed.get(), socket_path));
  if (passed && ::listen(passed.get(), kBacklog) != 0) return FailErrno(fmt::format("listen {}", socket_path));
  UniqueFd listener = passed ? std::move(passed) : TRY(ListenForClients(socket_path));
  RefuseFds(listener.get());  // HTTP needs none
  std::unique_ptr<Control> control{new Control(loop, served, limits, Ns{0})};
  control->configuration_ = configuration;
  TRY(control->door_.Open(std::move(listener), socket_path));
  return control;
}

Result<std::unique_ptr<Control>> Control::ServeMetrics(EventLoop& loop, const Served& served,
                                                       const std::string& address, UniqueFd passed) {
  std::unique_ptr<Control> control{new Control(loop, served, ClientLimits::ForMetrics(), kScraperStay)};
  control->metrics_only_ = true;
  evhttp_set_allowed_methods(control->http_, EVHTTP_REQ_GET);
  UniqueFd listener = passed ? std::move(passed) : TRY(ListenTcp(address));
  TRY(control->door_.Open(std::move(listener), "--metrics-listen " + address));
  return control;
}

void Control::OnRequest(evhttp_request* request, void* self) noexcept { static_cast<Control*>(self)->Admit(request); }

// Before a request of such a user is read.
std::optional<ConnectionLimiter::Refusal> Control::WhyNotLetIn(int fd) const {
  if (configuration_ == nullptr) return std::nullopt;
  const auto why_not = WhyNotLookedAt(RightsOf(configuration_->access(), user_of_(fd), ::geteuid()));
  if (!why_not) return std::nullopt;
  return ConnectionLimiter::Refusal{HttpStatus(why_not->kind), why_not->error};
}

void Control::OnAnswered(evhttp_request* request, void* self) noexcept {
  evhttp_connection* const connection = evhttp_request_get_connection(request);
  if (connection == nullptr) return;
  auto& control = *static_cast<Control*>(self);
  if (const auto open = control.open_.find(connection); open != control.open_.end() && open->second.memory != nullptr)
    open->second.memory->reset();
  control.door_.Ended(evhttp_connection_get_bufferevent(connection));
}

void Control::OnClientGone(evhttp_connection* connection, void* self) noexcept {
  auto& open = static_cast<Control*>(self)->open_;
  const auto it = open.find(connection);
  if (it == open.end()) return;
  if (const auto exchange = it->second.exchange.lock()) exchange->GiveUp();
  open.erase(it);
  static_cast<Control*>(self)->door_.Sweep();
}

// Now, or when its user has a request left.
void Control::Admit(evhttp_request* raw) {
  const auto exchange = std::make_shared<Exchange>(raw, *this);
  evhttp_connection* connection = evhttp_request_get_connection(raw);
  open_[connection] = {exchange, nullptr};
  evhttp_connection_set_closecb(connection, &Control::OnClientGone, this);
  auto who = door_.WhoIs(StreamOf(raw));
  door_.Began(StreamOf(raw));
  evhttp_request_set_on_complete_cb(raw, &Control::OnAnswered, this);
  if (!who) {
    evhttp_add_header(evhttp_request_get_output_headers(raw), "Connection", "close");
    return exchange->Answer(who.error().status, ErrorText(who.error().error));
  }
  exchange->who_ = std::move(*who);
  if (exchange->who_.privileged) return Begin(raw, exchange);
  exchange->Later(shares_.Request(exchange->who_), [this, raw, exchange] { Queue(raw, exchange); });
}

void Control::Queue(evhttp_request* raw, const ExchangePtr& exchange) {
  exchange->turn_ = pacer_.Enter(exchange->who().name, [this, raw, exchange] { Begin(raw, exchange); });
}

void Control::Begin(evhttp_request* raw, const ExchangePtr& exchange) {
  exchange->turn_.reset();
  if (exchange->who().privileged) return Dispatch(raw, exchange);
  // Nobody is there to read an answer; libevent finds that out when there is one.
  if (HasLeft(bufferevent_getfd(StreamOf(raw)))) return exchange->Answer(HttpStatus(ErrorKind::kUnavailable), "");
  auto memory = shares_.Memory(exchange->who(), evhttp_request_get_command(raw) == EVHTTP_REQ_GET);
  if (memory == nullptr) return exchange->Later(kLookForMemoryEvery, [this, raw, exchange] { Queue(raw, exchange); });
  exchange->memory_ = std::make_shared<Places::Place>(std::move(memory));
  open_[evhttp_request_get_connection(raw)].memory = exchange->memory_;
  Dispatch(raw, exchange);
}

void Control::Dispatch(evhttp_request* raw, const ExchangePtr& exchange) {
  if (metrics_only_) evhttp_add_header(evhttp_request_get_output_headers(raw), "Connection", "close");
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(raw);
  const char* raw_path = evhttp_uri_get_path(uri);
  const std::string path = raw_path != nullptr ? raw_path : "";
  Request request;
  request.body = Body(raw);
  request.client = bufferevent_getfd(StreamOf(raw));
  if (HasUnreadBody(raw)) {
    // What follows the header would be taken for the next request.
    evhttp_add_header(evhttp_request_get_output_headers(raw), "Connection", "close");
    return AnswerError(exchange, {ErrorKind::kInvalid, "a GET request takes no body: send it without one", {}});
  }
  request.user = user_of_(bufferevent_getfd(StreamOf(raw)));
  if (configuration_ != nullptr) {
    request.rights_now = [this, user = request.user] { return RightsOf(configuration_->access(), user, ::geteuid()); };
    request.rights = request.rights_now();
    const bool looks_only = evhttp_request_get_command(raw) == EVHTTP_REQ_GET;
    if (const auto why_not = WhyNotPermitted(request.rights, looks_only, path, request.body, served_.reports))
      return AnswerError(exchange, *why_not);
  }
  const char* raw_query = evhttp_uri_get_query(uri);
  if (configuration_ != nullptr &&
      AnswerConfig(*configuration_, MethodOf(raw), path, raw_query != nullptr ? raw_query : "", exchange))
    return;
  bool path_known = false;
  for (const Route& route : kRoutes) {
    if (metrics_only_ && route.path != kMetricsPath) continue;
    if (!Matches(route.path, path, &request.name)) continue;
    path_known = true;
    if (route.method != evhttp_request_get_command(raw)) continue;
    auto query = Query(evhttp_uri_get_query(uri), route.parameters);
    if (!query) return AnswerError(exchange, query.error());
    request.query = std::move(*query);
    for (const char* key : {"dry_run", "queue", "if_unused", "force", "follow"})
      if (const std::string value = request.Parameter(key); !value.empty() && value != "0" && value != "1")
        return AnswerError(exchange,
                           {ErrorKind::kInvalid, fmt::format("{} {} is unknown: allowed is 0 or 1", key, value), key});
    if (route.why_not != nullptr)
      if (const auto why_not = route.why_not(served_, request)) return AnswerError(exchange, *why_not);
    return route.handle(served_, request, exchange);
  }
  AnswerError(exchange, path_known
                            ? ApiError{ErrorKind::kWrongMethod, fmt::format("{} does not take this method", path), {}}
                            : ApiError{ErrorKind::kNotFound, fmt::format("there is no {}", path), {}});
}

}  // namespace vgpud::daemon
