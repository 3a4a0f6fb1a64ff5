// SPDX-License-Identifier: Apache-2.0
// One libevent loop per process (or thread that owns one). Not thread-safe: everything happens on the owning thread,
// except Stop via a signalled eventfd.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>

struct event;
struct event_base;

namespace vgpud {

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // A registration; destroying it ends it. May be destroyed inside its own callback: what that holds lives until it has
  // returned.
  class Watch {
   public:
    Watch(EventLoop& loop, std::function<void()> callback);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    // Timers: (re)arm for `delay` from now.
    void Arm(std::chrono::nanoseconds delay);
    // File descriptors: no callbacks until Resume(). Both may be called inside the watch's own callback.
    void Pause();
    void Resume();

   private:
    friend class EventLoop;
    static void OnEvent(int fd, short what, void* self) noexcept;
    event* event_ = nullptr;
    const std::shared_ptr<const std::function<void()>> callback_;  // a call that is under way holds it, too
  };
  using WatchPtr = std::unique_ptr<Watch>;

  // Calls back whenever `fd` is readable (or hung up), level-triggered.
  [[nodiscard]] WatchPtr OnReadable(int fd, std::function<void()> callback);
  // Calls back whenever `fd` is writable, level-triggered: Pause() it while there is nothing to write.
  [[nodiscard]] WatchPtr OnWritable(int fd, std::function<void()> callback);
  // A one-shot timer, armed with Watch::Arm.
  [[nodiscard]] WatchPtr Timer(std::function<void()> callback);
  // Calls back on `signal` (SIGTERM ...), in the loop, not in the handler.
  [[nodiscard]] WatchPtr OnSignal(int signal, std::function<void()> callback);
  // Runs `task` once, after the current callback has returned; never, if the loop is over before.
  void Post(std::function<void()> task);
  // Serves events until Stop().
  void Run();
  void Stop();
  event_base* base() const { return base_; }

 private:
  struct Posted {
    EventLoop& loop;
    std::function<void()> task;
    std::list<Posted>::iterator place;
  };
  static void RunPosted(int fd, short what, void* posted) noexcept;

  event_base* base_;
  std::list<Posted> posted_;
};

}  // namespace vgpud
