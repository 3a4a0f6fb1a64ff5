// SPDX-License-Identifier: Apache-2.0
// The control API: HTTP/1.1 with JSON over a Unix socket (libevent's evhttp). One table row per request. Main thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "vgpud/control/client_shares.h"
#include "vgpud/control/connection_limiter.h"
#include "vgpud/control/pacer.h"

struct evhttp;
struct evhttp_connection;
struct evhttp_request;

namespace vgpud::daemon {

struct ApiError;
class Admission;
class Changes;
class Chronicle;
class Configuration;
class NewVfs;
class Reports;
class ServedGpus;
class VfLives;
class VfService;

class Control {
 public:
  // The parts of the daemon that requests act on.
  struct Served {
    explicit Served(VfService& service);
    ServedGpus& gpus;
    const Admission& admission;
    NewVfs& new_vfs;
    VfLives& lives;
    Changes& changes;
    const Reports& reports;
    const Chronicle& chronicle;
  };
  // Listens at `socket_path`, mode 0660, group "vgpu" where there is one and we may; or on `passed`, which is there
  // already. `configuration`: what the requests about it act on, without which there are none.
  [[nodiscard]] static Result<std::unique_ptr<Control>> Serve(EventLoop& loop, const Served& served,
                                                              const std::string& socket_path,
                                                              Configuration* configuration = nullptr,
                                                              UniqueFd passed = {}, const ClientLimits& limits = {});
  // Listens at `address` (ADDRESS:PORT), or on `passed`, and answers GET /metrics and nothing else, to anybody.
  [[nodiscard]] static Result<std::unique_ptr<Control>> ServeMetrics(EventLoop& loop, const Served& served,
                                                                     const std::string& address, UniqueFd passed = {});
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // One request on its way; answers once, or not at all when its client went away.
  class Exchange : public std::enable_shared_from_this<Exchange> {
   public:
    Exchange(evhttp_request* request, Control& control) : request_(request), control_(control) {}
    // Whose request it is, and what its kind has of everything.
    const Sharer& who() const { return who_; }
    ClientShares& shares() const { return control_.shares_; }
    EventLoop& loop() const { return control_.loop_; }
    // `then` takes this thread's time for the client, later than in its turn: that counts as if it were in it.
    template <class Arg>
    std::function<void(Arg)> Paced(std::function<void(Arg)> then) {
      return [self = shared_from_this(), then = std::move(then)](Arg arg) {
        const Ns before = ThreadTime();
        then(std::move(arg));
        self->Charge(ThreadTime() - before);
      };
    }
    // Runs `then` after `delay`, unless the client leaves before. Once at a time.
    void Later(Ns delay, std::function<void()> then);
    // The answer may take as long as it likes. `gone`, once, if the client leaves before.
    void Wait(std::function<void()> gone);
    // What does not fit into the memory for answers is replaced by an error.
    void Answer(int status, std::string body, const char* type = "application/json");
    // Others need what the client holds: answers `error`, or breaks an answer off that has begun.
    void BreakOff(const ApiError& error);
    // Answers 200 in pieces, each made when the client has taken the one before, so that neither memory nor the loop
    // depends on how long it all is, nor the others on how fast it is taken. `next` appends to its argument, never
    // nothing, and says whether there is more.
    using Source = std::function<bool(std::string*)>;
    void Stream(const char* type, Source next);
    // The same with pieces that come later: `next` calls its argument once, on the main thread, whenever there is one.
    using Deliver = std::function<void(std::string piece, bool more)>;
    using LateSource = std::function<void(Deliver)>;
    void StreamLate(const char* type, LateSource next);
    // The same for an answer that may last as long as the client likes, with long times between pieces.
    void StreamOn(const char* type, LateSource next);

   private:
    friend class Control;
    static void OnTaken(evhttp_connection*, void* self) noexcept;
    void Charge(Ns spent);
    // The client has so many bytes to take; if it does not, and others need the memory, it has to leave.
    bool Owes(size_t bytes);
    void AskForPiece();
    void SendPiece(const std::string& piece, bool more);
    // The client is gone.
    void GiveUp();
    void LookForClient();
    void StopLooking();
    evhttp_request* request_;
    Control& control_;
    Sharer who_;
    std::shared_ptr<Places::Place> memory_;  // for the answer; none: of one with privileges
    Pacer::Turn turn_;
    std::function<void()> gone_;
    EventLoop::WatchPtr later_;
    Ns rest_{0};  // from the last piece on, before the next
    EventLoop::WatchPtr client_;
    LateSource source_;
    std::shared_ptr<Exchange> self_;  // while it streams
  };
  using ExchangePtr = std::shared_ptr<Exchange>;

 private:
  Control(EventLoop& loop, const Served& served, const ClientLimits& limits, Ns longest_stay);
  static void OnRequest(evhttp_request* request, void* self) noexcept;
  static void OnAnswered(evhttp_request* request, void* self) noexcept;
  static void OnClientGone(evhttp_connection* connection, void* self) noexcept;
  // Which clients are closed at once.
  std::optional<ConnectionLimiter::Refusal> WhyNotLetIn(int fd) const;
  void Admit(evhttp_request* request);
  void Queue(evhttp_request* request, const std::shared_ptr<Exchange>& exchange);
  void Begin(evhttp_request* request, const std::shared_ptr<Exchange>& exchange);
  void Dispatch(evhttp_request* request, const std::shared_ptr<Exchange>& exchange);

  EventLoop& loop_;
  const Served served_;
  evhttp* http_;
  const std::function<uid_t(int fd)> user_of_;
  ClientShares shares_;
  ConnectionLimiter door_;
  Pacer pacer_;
  Configuration* configuration_ = nullptr;
  bool metrics_only_ = false;
  struct Open {
    std::weak_ptr<Exchange> exchange;
    std::shared_ptr<Places::Place> memory;  // until its answer is taken
  };
  std::map<evhttp_connection*, Open> open_;
};

}  // namespace vgpud::daemon
