// SPDX-License-Identifier: Apache-2.0
// The control API: HTTP/1.1 with JSON over a Unix socket (libevent's evhttp). One table row per request. Main thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "vgpud/control/connection_limiter.h"

struct evhttp;
struct evhttp_connection;
struct evhttp_request;

namespace vgpud::daemon {

class Configuration;
class VfRegistry;

class Control {
 public:
  // Listens at `socket_path`, mode 0660, group "vgpu" where there is one and we may; or on `passed`, which is there
  // already. `configuration`: what the requests about it act on, without which there are none.
  [[nodiscard]] static Result<std::unique_ptr<Control>> Serve(EventLoop& loop, VfRegistry& registry,
                                                              const std::string& socket_path,
                                                              Configuration* configuration = nullptr,
                                                              UniqueFd passed = {});
  // Listens at `address` (ADDRESS:PORT), or on `passed`, and answers GET /metrics and nothing else, to anybody.
  [[nodiscard]] static Result<std::unique_ptr<Control>> ServeMetrics(EventLoop& loop, VfRegistry& registry,
                                                                     const std::string& address, UniqueFd passed = {});
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // One request on its way; answers once, or not at all when its client went away.
  class Exchange : public std::enable_shared_from_this<Exchange> {
   public:
    Exchange(evhttp_request* request, EventLoop& loop, ConnectionLimiter& door)
        : request_(request), loop_(loop), door_(door) {}
    // The answer may take as long as it likes. `gone`, once, if the client leaves before.
    void Wait(std::function<void()> gone);
    void Answer(int status, const std::string& body, const char* type = "application/json");
    // Answers 200 in pieces, each made when the client has taken the one before, so that neither memory nor the loop
    // depends on how long it all is. `next` appends to its argument, never nothing, and says whether there is more.
    using Source = std::function<bool(std::string*)>;
    void Stream(const char* type, Source next);
    // The same with pieces that come later: `next` calls its argument once, on the main thread, whenever there is one.
    using Deliver = std::function<void(std::string piece, bool more)>;
    using LateSource = std::function<void(Deliver)>;
    void StreamLate(const char* type, LateSource next);

   private:
    friend class Control;
    static void OnTaken(evhttp_connection*, void* self) noexcept;
    void AskForPiece();
    void SendPiece(const std::string& piece, bool more);
    // The client is gone.
    void GiveUp();
    void LookForClient();
    void StopLooking();
    evhttp_request* request_;
    EventLoop& loop_;
    ConnectionLimiter& door_;
    std::function<void()> gone_;
    EventLoop::WatchPtr client_;
    LateSource source_;
    std::shared_ptr<Exchange> self_;  // while it streams
  };
  using ExchangePtr = std::shared_ptr<Exchange>;

 private:
  Control(EventLoop& loop, VfRegistry& registry, ConnectionLimiter::Rules rules);
  static void OnRequest(evhttp_request* request, void* self) noexcept;
  static void OnAnswered(evhttp_request* request, void* self) noexcept;
  static void OnClientGone(evhttp_connection* connection, void* self) noexcept;
  void Dispatch(evhttp_request* request);

  EventLoop& loop_;
  VfRegistry& registry_;
  evhttp* http_;
  ConnectionLimiter door_;
  Configuration* configuration_ = nullptr;
  bool metrics_only_ = false;
  std::map<evhttp_connection*, std::weak_ptr<Exchange>> open_;
};

}  // namespace vgpud::daemon
