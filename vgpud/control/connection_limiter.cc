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
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/fd.h"
#include "base/log.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kCheckEvery = std::chrono::seconds{1};
constexpr Ns kLeastWait = std::chrono::seconds{1};          // without a request, before a place is given away
constexpr Ns kRetryEvery = std::chrono::milliseconds{100};  // while there are no descriptors
constexpr Ns kComplainEvery = std::chrono::minutes{1};
constexpr size_t kAtOnce = 16;  // that come before others are served
constexpr size_t kReadAhead = 4096;

// libevent hands the evhttp to the error callback of a listener that belongs to it. Never destroyed: a static door may
// end later than any map.
std::map<evhttp*, ConnectionLimiter*>& Doors() {
  static auto* const doors = new std::map<evhttp*, ConnectionLimiter*>;
  return *doors;
}

// libevent takes the callbacks away from a stream that it has done with.
bool IsDone(bufferevent* stream) {
  bufferevent_event_cb on_event = nullptr;
  bufferevent_getcb(stream, nullptr, nullptr, &on_event, nullptr);
  return on_event == nullptr;
}

// The client has closed, and all that it sent has been read.
bool IsAtEnd(bufferevent* stream) {
  char next = 0;
  return ::recv(bufferevent_getfd(stream), &next, sizeof next, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// libevent closes it before the loop waits again, also while it serves a request of it.
void End(bufferevent* stream) {
  bufferevent_disable(stream, EV_READ | EV_WRITE);
  bufferevent_trigger_event(stream, BEV_EVENT_READING | BEV_EVENT_EOF, BEV_TRIG_DEFER_CALLBACKS);
}

// Says why and closes. What does not fit into the socket is left out.
void Refuse(bufferevent* stream, const ConnectionLimiter::Refusal& refusal) {
  const std::string body = nlohmann::json{{"error", refusal.error}}.dump() + "\n";
  const std::string answer = fmt::format(
      "HTTP/1.1 {} Refused\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      refusal.status, body.size(), body);
  (void)::send(bufferevent_getfd(stream), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  End(stream);
}

}  // namespace

ConnectionLimiter::ConnectionLimiter(EventLoop& loop, evhttp* http, const Rules& rules, Admission admission)
    : base_(loop.base()),
      http_(http),
      rules_(rules),
      admission_(std::move(admission)),
      places_(rules.places),
      timer_(loop.Timer([this] { Check(); })),
      opener_(loop.Timer([this] {
        closed_ = false;
        evconnlistener_enable(listener_);
      })),
      let_in_(loop.Timer([this] { LetIn(); })) {
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

// libevent gives the stream its socket after this has returned.
bufferevent* ConnectionLimiter::OnClient(event_base* base, void* self) noexcept {
  auto& door = *static_cast<ConnectionLimiter*>(self);
  bufferevent* stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  CHECK(stream != nullptr);
  bufferevent_incref(stream);
  const TimePoint now = Now();
  door.clients_.push_back({stream, {now, now}});
  if (door.fresh_ == 0) door.fresh_since_ = ThreadTime();
  if (door.fresh_++ == 0) door.let_in_->Arm(Ns{0});
  if (door.fresh_ < kAtOnce) return stream;
  door.pauses_ = true;
  evconnlistener_disable(door.listener_);
  return stream;
}

void ConnectionLimiter::OnAcceptFailed(evconnlistener*, void* http) noexcept {
  const int error = errno;
  const auto door = Doors().find(static_cast<evhttp*>(http));
  if (door == Doors().end()) return;
  door->second->Close(kRetryEvery);
  door->second->Complain(
      fmt::format("cannot let a client in: {}{}", std::strerror(error),
                  error == EMFILE ? " (raise the limit of open files, LimitNOFILE= in a unit)" : ""));
}

void ConnectionLimiter::Close(Ns pause) {
  evconnlistener_disable(listener_);
  closed_ = true;
  opener_->Arm(pause);
}

void ConnectionLimiter::Complain(const std::string& why) {
  const TimePoint now = Now();
  if (complained_ != TimePoint{} && now - complained_ < kComplainEvery) return;
  complained_ = now;
  LOG(kWarning, "{}: {}", where_, why);
}

std::optional<ConnectionLimiter::Refusal> ConnectionLimiter::Judge(Client* client) {
  const int fd = bufferevent_getfd(client->stream);
  if (auto refusal = admission_.why_not(fd)) return refusal;
  client->who = admission_.sharer(fd);
  client->place = places_.Take(client->who);
  if (client->place == nullptr) {
    ForgetThoseGone(client->who);
    client->place = places_.Take(client->who);
  }
  if (client->place == nullptr && places_.full() && places_.held(client->who) == 0) {
    if (Client* const other = OneOfWhoHasMost()) TellToLeave(other);
    client->place = places_.Take(client->who);
  }
  if (client->place != nullptr) return std::nullopt;
  const std::string why = places_.WhyNone(client->who);
  Complain(why);
  return Refusal{503, why};
}

// Who closes a connection and opens another has its place again, though libevent has not heard of it yet.
void ConnectionLimiter::ForgetThoseGone(const Sharer& who) {
  for (Client& client : clients_) {
    if (client.place == nullptr || client.stay.has_request || client.who.name != who.name) continue;
    if (!IsAtEnd(client.stream)) continue;
    client.told_to_leave = true;
    client.place.reset();
  }
}

void ConnectionLimiter::LetIn() {
  DropThoseDone();
  std::vector<std::pair<bufferevent*, Refusal>> to_close;
  for (size_t i = clients_.size() - std::exchange(fresh_, 0); i < clients_.size(); ++i) {
    if (clients_[i].place != nullptr || clients_[i].told_to_leave) continue;
    auto refusal = Judge(&clients_[i]);
    if (!refusal) continue;
    clients_[i].told_to_leave = true;
    to_close.emplace_back(clients_[i].stream, std::move(*refusal));
  }
  for (const auto& [stream, refusal] : to_close) Refuse(stream, refusal);
  DropThoseDone();
  if (!checks_ && !clients_.empty()) CheckIn(kCheckEvery);
  Rest();
}

// Who came meanwhile waits in the kernel's queue, which is long.
void ConnectionLimiter::Rest() {
  spent_ += ThreadTime() - fresh_since_;
  const TimePoint now = Now();
  const Ns rest = part_.Rest(now, spent_);
  part_.Begin(now + rest, spent_);
  if ((std::exchange(pauses_, false) || rest > Ns{0}) && !closed_) Close(rest);
}

const char* ConnectionLimiter::WhyLeave(const Rules& rules, const Stay& stay, TimePoint now, bool full) {
  if (rules.stay != Ns{0} && now - stay.came >= rules.stay) return "it has been here for too long";
  if (stay.waits) return nullptr;
  if (stay.has_request) return now - stay.since >= rules.answer ? "it does not take its answer" : nullptr;
  if (now - stay.since >= rules.request) return "its request does not come";
  return full && now - stay.since >= kLeastWait ? "others wait for its place" : nullptr;
}

ConnectionLimiter::Client* ConnectionLimiter::Find(bufferevent* stream) {
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&](const auto& c) { return c.stream == stream; });
  return found != clients_.end() ? &*found : nullptr;
}

tl::expected<Sharer, ConnectionLimiter::Refusal> ConnectionLimiter::WhoIs(bufferevent* stream) {
  DropThoseDone();
  Client* const client = Find(stream);
  if (client == nullptr) return tl::unexpected(Refusal{503, "this connection is not served any more"});
  // Its request has come before LetIn: then that has nothing left to do with it.
  if (client->place == nullptr && !client->told_to_leave) {
    if (auto refusal = Judge(client)) {
      client->told_to_leave = true;
      return tl::unexpected(std::move(*refusal));
    }
  }
  return client->who;
}

void ConnectionLimiter::Note(bufferevent* stream, bool has_request) {
  Client* const client = Find(stream);
  if (client == nullptr) return;
  client->stay.has_request = has_request;
  // While it serves a request libevent reads what the client sends behind it. 0: no limit, as a request has its own.
  bufferevent_setwatermark(stream, EV_READ, 0, has_request ? kReadAhead : 0);
  client->stay.waits = false;
  client->stay.since = Now();
}

void ConnectionLimiter::Waits(bufferevent* stream) {
  if (Client* const client = Find(stream)) client->stay.waits = true;
}

void ConnectionLimiter::Dismiss(bufferevent* stream) {
  if (Client* const client = Find(stream); client != nullptr && !client->told_to_leave) TellToLeave(client);
}

void ConnectionLimiter::DropThoseDone() {
  const size_t looked_at = clients_.size() - fresh_;
  size_t index = 0;
  std::erase_if(clients_, [&](const Client& client) {
    const bool is_fresh = index++ >= looked_at;
    if (!IsDone(client.stream)) return false;
    if (is_fresh) --fresh_;
    bufferevent_decref(client.stream);
    return true;
  });
}

// A connection of the sharer who has most, and more than one. Those without a request go first, those that wait for a
// VF last.
ConnectionLimiter::Client* ConnectionLimiter::OneOfWhoHasMost() {
  const auto order = [this](const Client& client) {
    return std::tuple(places_.held(client.who), !client.stay.waits, !client.stay.has_request);
  };
  Client* found = nullptr;
  for (Client& client : clients_) {
    if (client.told_to_leave || client.place == nullptr || client.who.privileged || places_.held(client.who) < 2)
      continue;
    if (found == nullptr || order(client) > order(*found)) found = &client;
  }
  return found;
}

void ConnectionLimiter::TellToLeave(Client* client) {
  client->told_to_leave = true;
  client->place.reset();
  End(client->stream);
}

// Of those without a request.
ConnectionLimiter::Client* ConnectionLimiter::FirstToGo() {
  const auto goes_before = [this](const Client& a, const Client& b) {
    const uint32_t of_a = places_.held(a.who), of_b = places_.held(b.who);
    return of_a != of_b ? of_a > of_b : a.stay.since < b.stay.since;
  };
  Client* first = nullptr;
  for (Client& client : clients_) {
    if (client.stay.has_request || client.told_to_leave || client.place == nullptr || client.who.privileged) continue;
    if (first == nullptr || goes_before(client, *first)) first = &client;
  }
  return first;
}

void ConnectionLimiter::CheckIn(Ns delay) {
  checks_ = true;
  timer_->Arm(delay);
}

void ConnectionLimiter::Check() {
  checks_ = false;
  DropThoseDone();
  const TimePoint now = Now();
  Client* const first_to_go = places_.full() ? FirstToGo() : nullptr;
  for (Client& client : clients_)
    if (!client.told_to_leave && (WhyLeave(rules_, client.stay, now, &client == first_to_go) != nullptr ||
                                  HasLeft(bufferevent_getfd(client.stream))))
      TellToLeave(&client);
  if (!clients_.empty()) CheckIn(places_.full() ? kRetryEvery : kCheckEvery);
}

}  // namespace vgpud::daemon
