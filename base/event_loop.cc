// SPDX-License-Identifier: Apache-2.0
#include "base/event_loop.h"

#include <event2/event.h>

#include <utility>

#include "base/check.h"

namespace vgpud {

EventLoop::EventLoop() {
  event_config* config = event_config_new();
  CHECK(config != nullptr);
  event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
  base_ = event_base_new_with_config(config);
  event_config_free(config);
  CHECK(base_ != nullptr);
}

EventLoop::~EventLoop() {
  posted_.clear();  // what they hold may be watches of this loop
  event_base_free(base_);
}

EventLoop::Watch::Watch(EventLoop&, std::function<void()> callback)
    : callback_(std::make_shared<const std::function<void()>>(std::move(callback))) {}

EventLoop::Watch::~Watch() {
  if (event_ != nullptr) event_free(event_);
}

void EventLoop::Watch::OnEvent(int, short, void* self) noexcept {
  const auto callback = static_cast<Watch*>(self)->callback_;
  (*callback)();
}

void EventLoop::Watch::Arm(std::chrono::nanoseconds delay) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(delay).count();
  const timeval timeout{static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
  event_add(event_, &timeout);
}

void EventLoop::Watch::Pause() { event_del(event_); }
void EventLoop::Watch::Resume() { CHECK(event_add(event_, nullptr) == 0); }

EventLoop::WatchPtr EventLoop::OnReadable(int fd, std::function<void()> callback) {
  auto watch = std::make_unique<Watch>(*this, std::move(callback));
  watch->event_ = event_new(base_, fd, EV_READ | EV_PERSIST, &Watch::OnEvent, watch.get());
  CHECK(watch->event_ != nullptr && event_add(watch->event_, nullptr) == 0);
  return watch;
}

EventLoop::WatchPtr EventLoop::OnWritable(int fd, std::function<void()> callback) {
  auto watch = std::make_unique<Watch>(*this, std::move(callback));
  watch->event_ = event_new(base_, fd, EV_WRITE | EV_PERSIST, &Watch::OnEvent, watch.get());
  CHECK(watch->event_ != nullptr && event_add(watch->event_, nullptr) == 0);
  return watch;
}

EventLoop::WatchPtr EventLoop::Timer(std::function<void()> callback) {
  auto watch = std::make_unique<Watch>(*this, std::move(callback));
  watch->event_ = evtimer_new(base_, &Watch::OnEvent, watch.get());
  CHECK(watch->event_ != nullptr);
  return watch;
}

EventLoop::WatchPtr EventLoop::OnSignal(int signal, std::function<void()> callback) {
  auto watch = std::make_unique<Watch>(*this, std::move(callback));
  watch->event_ = evsignal_new(base_, signal, &Watch::OnEvent, watch.get());
  CHECK(watch->event_ != nullptr && event_add(watch->event_, nullptr) == 0);
  return watch;
}

void EventLoop::RunPosted(int, short, void* posted) noexcept {
  auto& [loop, task, place] = *static_cast<Posted*>(posted);
  std::list<Posted> owned;
  owned.splice(owned.end(), loop.posted_, place);
  task();
}

void EventLoop::Post(std::function<void()> task) {
  const timeval now{0, 0};
  const auto posted = posted_.insert(posted_.end(), Posted{*this, std::move(task), {}});
  posted->place = posted;
  CHECK(event_base_once(base_, -1, EV_TIMEOUT, &RunPosted, &*posted, &now) == 0);
}

void EventLoop::Run() { event_base_dispatch(base_); }
void EventLoop::Stop() { event_base_loopbreak(base_); }

}  // namespace vgpud
