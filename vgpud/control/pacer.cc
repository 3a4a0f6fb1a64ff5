// SPDX-License-Identifier: Apache-2.0
#include "vgpud/control/pacer.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace vgpud::daemon {

Ns ThreadTime() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + Ns{t.tv_nsec};
}

Ns PartOfTime::Rest(TimePoint now, Ns used) const {
  return std::clamp(parts_ * (used - used_) - (now - began_), Ns{0}, kLongest);
}

Pacer::Pacer(EventLoop& loop) : next_(loop.Timer([this] { Next(); })) {}

std::list<Pacer::Waiting>::iterator Pacer::Line::First() {
  return std::find_if(waiting.begin(), waiting.end(), [](const Waiting& each) { return each.begin != nullptr; });
}

Pacer::Turn Pacer::Enter(const std::string& who, std::function<void()> begin) {
  Line& line = queue_->lines[who];
  line.had = std::max(line.had, queue_->had);
  const auto place = line.waiting.insert(line.waiting.end(), {next_number_++, std::move(begin)});
  if (!armed_) Arm(Ns{0});
  return Turn{&*place, [queue = queue_, &line, place](const void*) { line.waiting.erase(place); }};
}

void Pacer::Charge(const std::string& who, Ns spent) {
  spent_ += spent;
  Line& line = queue_->lines[who];
  line.had = std::max(line.had, queue_->had) + spent;
}

void Pacer::Arm(Ns rest) {
  armed_ = true;
  next_->Arm(rest);
}

Pacer::Line* Pacer::WhoHadLeast() {
  Line* found = nullptr;
  bool any = false;
  for (auto& [who, line] : queue_->lines) {
    const auto first = line.First();
    any |= !line.waiting.empty();
    if (first == line.waiting.end()) continue;
    if (found == nullptr || std::pair(line.had, first->number) < std::pair(found->had, found->First()->number))
      found = &line;
  }
  std::erase_if(queue_->lines, [&](const auto& each) {
    return each.second.waiting.empty() && (!any || each.second.had <= queue_->had);
  });
  if (!any) queue_->had = Ns{0};
  return found;
}

void Pacer::Next() {
  armed_ = false;
  const TimePoint now = Now();
  if (const Ns rest = part_.Rest(now, spent_); rest > Ns{0}) return Arm(rest);
  const Ns before = ThreadTime();
  Line* const line = WhoHadLeast();
  if (line == nullptr) return;
  part_.Begin(now, spent_);
  armed_ = true;
  queue_->had = line->had;
  const auto begin = std::exchange(line->First()->begin, nullptr);
  // It may be forgotten when its last request has left the queue, but not before the next turn.
  begin();
  const Ns spent = ThreadTime() - before;
  line->had += spent;
  spent_ += spent;
  Arm(Ns{0});  // behind what has become due meanwhile
}

}  // namespace vgpud::daemon
