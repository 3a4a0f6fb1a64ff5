// SPDX-License-Identifier: Apache-2.0
// Lets clients in to an evhttp, so that no number of them harms the daemon: at most so many at once, none for longer
// than allowed, a pause instead of a busy loop when file descriptors run out. A request must arrive whole within a
// while, and its answer be taken within another, however slowly single bytes come and go; when all places are taken,
// the one that has been without a request for longest is given away. Who is not let in waits in the kernel's queue.
// Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/fd.h"

struct bufferevent;
struct event_base;
struct evconnlistener;
struct evhttp;

namespace vgpud::daemon {

class ConnectionLimiter {
 public:
  struct Rules {
    size_t most = 0;                        // clients at once
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
  // `loop` and `http` outlive the service; destroy this after `http` is freed.
  ConnectionLimiter(EventLoop& loop, evhttp* http, Rules rules);
  ~ConnectionLimiter();
  ConnectionLimiter(const ConnectionLimiter&) = delete;
  ConnectionLimiter& operator=(const ConnectionLimiter&) = delete;

  // `where`: for messages.
  [[nodiscard]] Result<void> Open(UniqueFd listener, const std::string& where);
  // A request of the client at `stream` is here; its answer has been taken.
  void Began(bufferevent* stream) { Note(stream, true); }
  void Ended(bufferevent* stream) { Note(stream, false); }
  // Its request is one that is waited for: it may stay until the answer.
  void Waits(bufferevent* stream);
  // A client may have left: its place is free after the running callback.
  void Sweep() { timer_->Arm(Ns{0}); }

 private:
  struct Client {
    bufferevent* stream;  // one reference to it is ours
    Stay stay;
    bool told_to_leave = false;
  };
  static bufferevent* OnClient(event_base* base, void* self) noexcept;
  static void OnAcceptFailed(evconnlistener* listener, void* http) noexcept;
  void Note(bufferevent* stream, bool has_request);
  void Check();
  void Close(const std::string& why);

  event_base* const base_;
  evhttp* const http_;
  const Rules rules_;
  evconnlistener* listener_ = nullptr;  // belongs to http_
  std::string where_;
  std::vector<Client> clients_;
  bool closed_ = false;
  TimePoint complained_{};
  EventLoop::WatchPtr timer_;
};

}  // namespace vgpud::daemon
