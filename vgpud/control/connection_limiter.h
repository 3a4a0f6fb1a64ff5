// SPDX-License-Identifier: Apache-2.0
// Lets clients in to an evhttp, so that no number of them harms the daemon or keeps the others out. Each sharer (a
// user, an address) has so many places and no more, and some are kept for root. Whoever gets none is told why and
// closed at once, before a request is read, so that nobody waits in the kernel's queue behind clients that are not
// served. Of what is there only so many are let in before the loop serves others, and whoever connects without end has
// a quarter of this thread's time at most.
//
// A request must arrive whole within a while, and its answer be taken within another, however slowly single bytes come
// and go; a client that has left is dropped wherever its request waits. When all places are taken, whoever has none
// gets one of the sharer who has most, and in time others get one without a request: of the sharer who has most, the
// one that has been so for longest. When file descriptors run out nobody is let in for a while, instead of a busy loop.
// Main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "vgpud/control/pacer.h"
#include "vgpud/host/shares.h"

struct bufferevent;
struct event_base;
struct evconnlistener;
struct evhttp;

namespace vgpud::daemon {

class ConnectionLimiter {
 public:
  struct Rules {
    PlaceLimit places{};
    Ns stay{0};                             // the longest that a client may stay, 0 = as long as it has requests
    Ns request = std::chrono::seconds{10};  // from being let in, or from the last answer, until a request is here
    Ns answer = std::chrono::minutes{5};    // from then until its answer is taken
  };
  // Why a client has to leave at `now`; nullptr: it may stay. `full`: somebody waits for a place.
  struct Stay {
    TimePoint came{};
    TimePoint since{};  // the request is here, or the last answer was taken, or it came
    bool has_request = false;
    bool waits = false;  // for an answer that may take as long as it likes
  };
  static const char* WhyLeave(const Rules& rules, const Stay& stay, TimePoint now, bool full);

  // Why a client is closed at once.
  struct Refusal {
    int status;  // of HTTP
    std::string error;
  };
  struct Admission {
    std::function<Sharer(int fd)> sharer = &Sharer::Peer;
    std::function<std::optional<Refusal>(int fd)> why_not = [](int) { return std::optional<Refusal>(); };
  };
  // `loop` and `http` outlive the service; destroy this after `http` is freed.
  ConnectionLimiter(EventLoop& loop, evhttp* http, const Rules& rules, Admission admission);
  ~ConnectionLimiter();
  ConnectionLimiter(const ConnectionLimiter&) = delete;
  ConnectionLimiter& operator=(const ConnectionLimiter&) = delete;

  // `where`: for messages.
  [[nodiscard]] Result<void> Open(UniqueFd listener, const std::string& where);
  // A request of the client at `stream` is here; its answer has been taken.
  void Began(bufferevent* stream) { Note(stream, true); }
  void Ended(bufferevent* stream) { Note(stream, false); }
  // Whose client it is; the refusal of one that is not let in.
  tl::expected<Sharer, Refusal> WhoIs(bufferevent* stream);
  // Its request is one that is waited for: it may stay until the answer.
  void Waits(bufferevent* stream);
  // It has to leave: others need what it holds.
  void Dismiss(bufferevent* stream);
  // A client may have left: its place is free after the running callback.
  void Sweep() { CheckIn(Ns{0}); }

 private:
  struct Client {
    bufferevent* stream;  // one reference to it is ours
    Stay stay;
    Sharer who = {};
    Places::Place place = {};  // none: it has not been looked at yet
    bool told_to_leave = false;
  };
  static bufferevent* OnClient(event_base* base, void* self) noexcept;
  static void OnAcceptFailed(evconnlistener* listener, void* http) noexcept;
  void Note(bufferevent* stream, bool has_request);
  Client* Find(bufferevent* stream);
  // Those that have come since.
  void LetIn();
  std::optional<Refusal> Judge(Client* client);
  void Rest();
  void ForgetThoseGone(const Sharer& who);
  void Check();
  void CheckIn(Ns delay);
  void DropThoseDone();
  Client* FirstToGo();
  Client* OneOfWhoHasMost();
  static void TellToLeave(Client* client);  // its place is free at once
  void Close(Ns pause);
  void Complain(const std::string& why);

  event_base* const base_;
  evhttp* const http_;
  const Rules rules_;
  const Admission admission_;
  Places places_;
  evconnlistener* listener_ = nullptr;  // belongs to http_
  std::string where_;
  std::vector<Client> clients_;
  size_t fresh_ = 0;     // of clients_, at the end: not looked at yet
  bool pauses_ = false;  // after kAtOnce of them, until they have been looked at
  Ns fresh_since_{0};    // in processor time
  Ns spent_{0};          // processor time, on letting in
  PartOfTime part_{4};
  bool closed_ = false;  // until opener_
  bool checks_ = false;  // timer_ is armed
  TimePoint complained_{};
  EventLoop::WatchPtr timer_;
  EventLoop::WatchPtr opener_;
  EventLoop::WatchPtr let_in_;
};

}  // namespace vgpud::daemon
