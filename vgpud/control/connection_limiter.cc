// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/connection_limiter.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kCheckEvery = std::chrono::seconds{1};
constexpr Ns kLeastWait = std::chrono::seconds{1};          // without a request, before a place is given away
constexpr Ns kRetryEvery = std::chrono::milliseconds{100};  // while nobody is let in
constexpr Ns kComplainEvery = std::chrono::minutes{1};

// libevent hands the evhttp to the error callback of a listener that belongs to it.
std::map<evhttp*, ConnectionLimiter*>& Doors() {
  static std::map<evhttp*, ConnectionLimiter*> doors;
  return doors;
}

// libevent takes the callbacks away from a stream that it has done with.
bool IsDone(bufferevent* stream) {
  bufferevent_event_cb on_event = nullptr;
  bufferevent_getcb(stream, nullptr, nullptr, &on_event, nullptr);
  return on_event == nullptr;
}

}  // namespace

ConnectionLimiter::ConnectionLimiter(EventLoop& loop, evhttp* http, Rules rules)
    : base_(loop.base()), http_(http), rules_(rules), timer_(loop.Timer([this] { Check(); })) {
  evhttp_set_bevcb(http_, &ConnectionLimiter::OnClient, this);
  Doors()[http_] = this;
}

ConnectionLimiter::~ConnectionLimiter() {
  Doors().erase(http_);
  for (const Client& client : clients_) bufferevent_decref(client.stream);
}

Result<void> ConnectionLimiter::Open(UniqueFd listener, const std::string& where) {
  where_ = where;
  listener_ =
      evconnlistener_new(base_, nullptr, nullptr, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, listener.get());
  if (listener_ == nullptr) return Fail(std::errc::io_error, fmt::format("cannot serve HTTP on {}", where));
  (void)listener.Release();  // the listener closes it
  if (evhttp_bind_listener(http_, listener_) == nullptr) {
    evconnlistener_free(std::exchange(listener_, nullptr));
    return Fail(std::errc::io_error, fmt::format("cannot serve HTTP on {}", where));
  }
  evconnlistener_set_error_cb(listener_, &ConnectionLimiter::OnAcceptFailed);
  return {};
}

bufferevent* ConnectionLimiter::OnClient(event_base* base, void* self) noexcept {
  auto& door = *static_cast<ConnectionLimiter*>(self);
  bufferevent* stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  CHECK(stream != nullptr);
  bufferevent_incref(stream);
  const TimePoint now = Now();
  door.clients_.push_back({stream, {now, now}});
  if (door.clients_.size() == 1) door.timer_->Arm(kCheckEvery);
  if (door.clients_.size() >= door.rules_.most)
    door.Close(fmt::format("{} clients at once, more must wait until some leave", door.rules_.most));
  return stream;
}

void ConnectionLimiter::OnAcceptFailed(evconnlistener*, void* http) noexcept {
  const int error = errno;
  const auto door = Doors().find(static_cast<evhttp*>(http));
  if (door == Doors().end()) return;
  door->second->Close(fmt::format("cannot let a client in: {}{}", std::strerror(error),
                                  error == EMFILE ? " (raise the limit of open files, LimitNOFILE= in a unit)" : ""));
}

void ConnectionLimiter::Close(const std::string& why) {
  evconnlistener_disable(listener_);
  closed_ = true;
  timer_->Arm(kRetryEvery);
  if (const TimePoint now = Now(); complained_ == TimePoint{} || now - complained_ >= kComplainEvery) {
    complained_ = now;
    LOG(kWarning, "{}: {}", where_, why);
  }
}

const char* ConnectionLimiter::WhyLeave(const Rules& rules, const Stay& stay, TimePoint now, bool full) {
  if (rules.stay != Ns{0} && now - stay.came >= rules.stay) return "it has been here for too long";
  if (stay.waits) return nullptr;
  if (stay.has_request) return now - stay.since >= rules.answer ? "it does not take its answer" : nullptr;
  if (now - stay.since >= rules.request) return "its request does not come";
  return full && now - stay.since >= kLeastWait ? "others wait for its place" : nullptr;
}

void ConnectionLimiter::Note(bufferevent* stream, bool has_request) {
  for (Client& client : clients_) {
    if (client.stream != stream) continue;
    client.stay.has_request = has_request;
    client.stay.waits = false;
    client.stay.since = Now();
  }
}

void ConnectionLimiter::Waits(bufferevent* stream) {
  for (Client& client : clients_)
    if (client.stream == stream) client.stay.waits = true;
}

void ConnectionLimiter::Check() {
  std::erase_if(clients_, [](const Client& client) {
    if (!IsDone(client.stream)) return false;
    bufferevent_decref(client.stream);
    return true;
  });
  const TimePoint now = Now();
  const bool full = clients_.size() >= rules_.most;
  Client* first_to_go = nullptr;
  for (Client& client : clients_) {
    const bool idle = !client.stay.has_request && !client.told_to_leave;
    if (idle && (first_to_go == nullptr || client.stay.since < first_to_go->stay.since)) first_to_go = &client;
  }
  for (Client& client : clients_)
    if (!client.told_to_leave && WhyLeave(rules_, client.stay, now, full && &client == first_to_go) != nullptr) {
      client.told_to_leave = true;
      ::shutdown(bufferevent_getfd(client.stream), SHUT_RDWR);  // libevent hears of it as of a client that left
    }
  if (closed_ && clients_.size() < rules_.most) {
    closed_ = false;
    evconnlistener_enable(listener_);
  }
  if (closed_ || !clients_.empty()) timer_->Arm(closed_ ? kRetryEvery : kCheckEvery);
}

}  // namespace vgpud::daemon
