// SPDX-License-Identifier: Apache-2.0
// vgpuctl top
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/see/frame.h"
#include "tools/vgpuctl/see/screen.h"

namespace vgpud::tools {
namespace {

constexpr size_t kWidthOfBatch = 200;
constexpr size_t kPage = 10;
constexpr int kEscape = 27;
constexpr const char* kKeys = "q quit  up/down select  s sort  p pause or resume  w weight  space freeze";

tl::expected<Frame, Failure> Look(const CtlArgs& args, const SortColumn& by) {
  const auto gpus = TryToAsk(args, "GET", "/v1/gpus");
  if (!gpus) return tl::unexpected(gpus.error());
  const auto vfs = TryToAsk(args, "GET", "/v1/vfs");
  if (!vfs) return tl::unexpected(vfs.error());
  const auto stats = TryToAsk(args, "GET", "/v1/stats");
  if (!stats) return tl::unexpected(stats.error());
  Frame frame = FrameOf(gpus->json, vfs->json, stats->json);
  Sort(frame, by);
  return frame;
}

int Batch(const CtlArgs& args, const SortColumn& by, Ns every) {
  for (unsigned shown = 0; args.count == 0 || shown < args.count; ++shown) {
    if (shown != 0) std::this_thread::sleep_for(every);
    const auto frame = Look(args, by);
    if (!frame) return Complain(frame.error());
    std::string out;
    if (args.json) {
      out = JsonOf(*frame).dump() + "\n";  // a line each time
    } else {
      const FrameText text = TextOf(*frame, kWidthOfBatch);
      for (const std::string& gpu : text.gpus) out += gpu + "\n";
      out += text.heading + "\n";
      for (const std::string& vf : text.vfs) out += vf + "\n";
      if (shown + 1 != args.count) out += "\n";
    }
    if (PrintRaw(out) != kExitOk || std::fflush(stdout) != 0) return kExitFailed;
  }
  return kExitOk;
}

// What is seen, which VF is selected, and what the keys do.
class Top {
 public:
  Top(const CtlArgs& args, const SortColumn& by, Ns every, Screen& screen)
      : args_(args), by_(&by), every_(every), screen_(screen) {}
  void Run() {
    for (;;) {
      if (!frozen_ && Now() >= next_look_) LookAgain();
      screen_.Draw(frame_, Title(), Index(), status_.empty() ? kKeys : status_);
      const Ns left = std::clamp(next_look_ - Now(), Ns{0}, every_);
      const auto key =
          screen_.Key(frozen_ ? std::chrono::milliseconds{1000} : std::chrono::ceil<std::chrono::milliseconds>(left));
      if (!key) continue;
      if (*key == 'q' || *key == kEscape) return;
      status_.clear();
      Press(*key);
    }
  }

 private:
  void LookAgain() {
    next_look_ = Now() + every_;
    auto frame = Look(args_, *by_);
    if (frame)
      frame_ = std::move(*frame);
    else
      status_ = frame.error().text;
  }
  std::string Title() const {
    return fmt::format("vgpuctl top  {} VFs  sorted by {}{}", frame_.vfs.size(), by_->name, frozen_ ? "  FROZEN" : "");
  }
  // The selected VF, wherever it is sorted to.
  size_t Index() {
    for (size_t i = 0; i < frame_.vfs.size(); ++i)
      if (frame_.vfs[i].name == selected_) return i;
    selected_ = frame_.vfs.empty() ? "" : frame_.vfs.front().name;
    return 0;
  }
  void Select(int64_t by) {
    if (frame_.vfs.empty()) return;
    const auto last = static_cast<int64_t>(frame_.vfs.size()) - 1;
    selected_ = frame_.vfs[static_cast<size_t>(std::clamp(static_cast<int64_t>(Index()) + by, int64_t{0}, last))].name;
  }
  void Press(int key) {
    static constexpr struct {
      int key;
      void (Top::*act)();
    } kActs[] = {{'s', &Top::SortByNext}, {'p', &Top::PauseOrResume}, {'w', &Top::SetWeight}, {' ', &Top::Freeze}};
    switch (ArrowOf(key)) {
      case Arrow::kUp:
        return Select(-1);
      case Arrow::kDown:
        return Select(1);
      case Arrow::kPageUp:
        return Select(-static_cast<int64_t>(kPage));
      case Arrow::kPageDown:
        return Select(kPage);
      case Arrow::kNone:
        break;
    }
    for (const auto& act : kActs)
      if (act.key == key) return (this->*act.act)();
  }
  void SortByNext() {
    const auto& columns = SortColumns();
    const auto at = static_cast<size_t>(by_ - columns.data());
    by_ = &columns[(at + 1) % columns.size()];
    Sort(frame_, *by_);
  }
  void Freeze() { frozen_ = !frozen_; }
  // False: there is no VF, or the answer was no.
  bool Confirm(const std::string& question) {
    const auto answer = screen_.Line(question + " (y/n) ");
    if (answer && (*answer == "y" || *answer == "yes")) return true;
    status_ = "nothing was done";
    return false;
  }
  void PauseOrResume() {
    if (frame_.vfs.empty()) return;
    const VfRow vf = frame_.vfs[Index()];
    const char* const what = vf.state == "paused" ? "resume" : "pause";
    if (!Confirm(fmt::format("{} {}?", what, vf.name))) return;
    Tell(TryToAsk(args_, "POST", fmt::format("/v1/vfs/{}/{}", vf.name, what)), fmt::format("{}: {}d", vf.name, what));
  }
  void SetWeight() {
    if (frame_.vfs.empty()) return;
    const VfRow vf = frame_.vfs[Index()];
    const auto typed = screen_.Line(fmt::format("new weight of {} (now {}): ", vf.name, vf.weight));
    if (!typed || typed->empty()) return;
    uint32_t weight = 0;
    const auto parsed = std::from_chars(typed->data(), typed->data() + typed->size(), weight);
    if (parsed.ec != std::errc{} || parsed.ptr != typed->data() + typed->size()) {
      status_ = fmt::format("{} is not a number: nothing was done", *typed);
      return;
    }
    if (!Confirm(fmt::format("weight of {}: {} -> {}?", vf.name, vf.weight, weight))) return;
    Tell(TryToAsk(args_, "PATCH", "/v1/vfs/" + vf.name, {{"weight", weight}}),
         fmt::format("{}: weight {} -> {}", vf.name, vf.weight, weight));
  }
  void Tell(const tl::expected<Answer, Failure>& answer, const std::string& done) {
    status_ = answer ? done : answer.error().text;
    next_look_ = Now();
  }

  const CtlArgs& args_;
  const SortColumn* by_;
  const Ns every_;
  Screen& screen_;
  Frame frame_;
  std::string selected_;
  std::string status_;
  TimePoint next_look_ = Now();
  bool frozen_ = false;
};

}  // namespace

int CmdTop(const CtlArgs& args) {
  const SortColumn& by = *FindSortColumn(args.sort);
  const Ns every = args.interval;
  if (args.batch) return Batch(args, by, every);
  const auto first = TryToAsk(args, "GET", "/v1/gpus");  // an error is better seen without the screen
  if (!first) return Complain(first.error());
  const auto screen = Screen::Open();
  if (screen == nullptr)
    return Complain(kExitUsage, "top needs a terminal; --batch prints the same as text, --count 1 --batch once");
  Top(args, by, every, *screen).Run();
  return kExitOk;
}

}  // namespace vgpud::tools
