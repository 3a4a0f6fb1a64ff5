// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/history_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "vgpud/host/private_dir.h"
#include "vgpud/host/thread_priority.h"

namespace vgpud::daemon {
namespace {

constexpr int kMostPages = share_limits::kHistoryBytes / 4096;
constexpr size_t kMostTasks = HistoryKeeper::kMostReads + 3;  // beside reads: to open, to write, to close

struct Opened {
  std::unique_ptr<History> history;
  History::Gpu gpu;
  std::vector<History::Vf> known;
};

Result<void> ReadAll(const std::string& state_dir, const std::string& path, Opened* opened) {
  TRY(OpenPrivateDir(state_dir, 0750, "usage history", "--state-dir"));
  auto history = TRY(History::Open(path, kMostPages));
  opened->gpu = TRY(history->ReadGpu());
  opened->known = TRY(history->ReadKnown(HistoryKeeper::kMostVfs));
  opened->history = std::move(history);
  return {};
}

Result<HistoryKeeper::Page> ReadPage(History& history, const HistoryKeeper::Query& query,
                                     const HistoryKeeper::Render& render) {
  auto rows = TRY(history.Report(query.from, query.to, query.most, query.after));
  HistoryKeeper::Page page;
  if (rows.size() == query.most && !rows.empty()) page.next = History::PlaceOf(rows.back());
  page.text = render(std::move(rows));
  return page;
}

// Of several rows of one VF only the last, which says most: each would count for the day once more.
void KeepLastOfEach(std::vector<History::Vf>* rows) {
  std::set<std::string> seen;
  std::vector<History::Vf> last;
  for (auto row = rows->rbegin(); row != rows->rend(); ++row)
    if (seen.insert(row->uuid).second) last.push_back(std::move(*row));
  rows->assign(std::make_move_iterator(last.rbegin()), std::make_move_iterator(last.rend()));
}

}  // namespace

HistoryKeeper::HistoryKeeper(std::string state_dir, TaskQueue& replies)
    : state_dir_(std::move(state_dir)),
      path_(state_dir_ + "/usage.db"),
      worker_("vgpud-history", kMostTasks, replies) {}

HistoryKeeper::~HistoryKeeper() = default;

void HistoryKeeper::Open(Ns limit) {
  struct Answer {
    Opened opened;
    Result<void> result;
    std::promise<void> there;
  };
  auto answer = std::make_shared<Answer>();
  auto there = answer->there.get_future();
  const bool posted = worker_.Post([answer, on_thread = on_thread_, dir = state_dir_, path = path_] {
    LowerOwnThread();
    answer->result = ReadAll(dir, path, &answer->opened);
    if (answer->result) on_thread->history = std::move(answer->opened.history);
    answer->there.set_value();
  });
  CHECK(posted);
  if (there.wait_for(limit) != std::future_status::ready) {
    error_ = fmt::format("usage history {}: the disk did not answer within {} ms: look after it and restart vgpud",
                         path_, limit / std::chrono::milliseconds{1});
  } else if (!answer->result) {
    error_ = answer->result.error().context;
  } else {
    state_ = kOn;
    past_gpu_ = std::move(answer->opened.gpu);
    known_.assign(std::make_move_iterator(answer->opened.known.begin()),
                  std::make_move_iterator(answer->opened.known.end()));
    return;
  }
  LOG(kError, "{}; running on without it", error_);
}

std::optional<History::Vf> HistoryKeeper::Known(const std::string& name) const {
  const auto named = [&](const History::Vf& vf) { return vf.name == name; };
  if (const auto gone = std::find_if(gone_.rbegin(), gone_.rend(), named); gone != gone_.rend())
    return gone->destroyed ? std::nullopt : std::optional(*gone);
  if (const auto known = std::find_if(known_.rbegin(), known_.rend(), named); known != known_.rend()) return *known;
  return std::nullopt;
}

// Kept until there is room on the disk; not without end, as anybody may create and destroy VFs.
void HistoryKeeper::Gone(History::Vf vf) {
  if (!on()) return;
  std::erase_if(known_, [&](const History::Vf& known) { return known.name == vf.name; });
  if (!vf.destroyed) {
    known_.push_back(vf);
    if (known_.size() > kMostVfs) known_.pop_front();
  }
  gone_.push_back(std::move(vf));
  ++gone_ever_;
  if (gone_.size() <= kMostVfs) return;
  ++lost_vfs_;
  if (given_up_++ == 0)
    LOG(kError, "usage history {}: cannot be written and more than {} VFs are gone since: the oldest are given up",
        path_, kMostVfs);
  gone_.pop_front();
}

void HistoryKeeper::Back(const std::string& uuid) {
  // The row of one that is gone stays: it says what was used so far, and a later one of the same VF says more.
  std::erase_if(known_, [&](const History::Vf& known) { return known.uuid == uuid; });
}

void HistoryKeeper::Write(std::vector<History::Vf> rows, const History::Gpu& gpu, int64_t unix_seconds,
                          std::function<void(bool)> done) {
  CHECK(!writing_);
  if (!on()) return done(true);
  rows.insert(rows.begin(), gone_.begin(), gone_.end());
  KeepLastOfEach(&rows);
  auto result = std::make_shared<Result<void>>();
  writing_ = worker_.Post(
      [rows = std::move(rows), gpu, unix_seconds, result, on_thread = on_thread_] {
        *result = on_thread->history->Write(rows, gpu, unix_seconds);
        if (!*result && result->error().code == std::errc::bad_message) on_thread->history.reset();
      },
      [this, result, up_to = gone_ever_, done] {
        writing_ = false;
        Written(*result, up_to);
        done(result->has_value());
      });
  if (!writing_) return done(false);
  writing_since_ = Now();
}

void HistoryKeeper::Written(const Result<void>& written, uint64_t up_to) {
  const bool hung = std::exchange(told_of_hang_, false);
  if (!written) return Failed(written.error());
  const uint64_t before_first = gone_ever_ - gone_.size();
  if (up_to > before_first) gone_.erase(gone_.begin(), gone_.begin() + static_cast<ptrdiff_t>(up_to - before_first));
  if (std::exchange(state_, kOn) == kFailing || hung)
    LOG(kInfo, "usage history {}: written again, {}", path_,
        given_up_ == 0 ? "nothing is lost" : fmt::format("without {} VFs that had gone meanwhile", given_up_));
  given_up_ = 0;
  error_.clear();
}

void HistoryKeeper::Failed(const Error& error) {
  const bool known = error_ == error.context;
  error_ = error.context;
  if (error.code == std::errc::bad_message) {
    gone_.clear();
    state_ = kOff;
    LOG(kError, "{}; running on without it", error_);
    return;
  }
  state_ = kFailing;
  if (!known) LOG(kError, "{}; tried again at each interval", error_);
}

void HistoryKeeper::Read(const Query& query, Render render, std::function<void(Result<Page>)> done) {
  if (!on()) return done(Fail(std::errc::no_such_device, error_));
  if (const std::string hang = HangText(); !hang.empty()) return done(Fail(std::errc::timed_out, hang));
  auto page = std::make_shared<Result<Page>>();
  const auto read = [query, page, render = std::move(render), on_thread = on_thread_] {
    if (on_thread->history != nullptr)
      *page = ReadPage(*on_thread->history, query, render);
    else
      *page = Fail(std::errc::no_such_device, "the usage history is closed");
  };
  const bool posted = worker_.waiting() < kMostReads && worker_.Post(read, [page, done] { done(std::move(*page)); });
  if (!posted)
    done(Fail(std::errc::resource_unavailable_try_again,
              fmt::format("usage history {}: {} reports wait already: ask again later", path_, kMostReads)));
}

Ns HistoryKeeper::Waited() const {
  const TimePoint now = Now();
  return std::max(worker_.busy(now), writing_ ? now - writing_since_ : Ns{0});
}

std::string HistoryKeeper::HangText() const {
  if (!hangs()) return {};
  return fmt::format(
      "usage history {}: the disk has not answered for {} s: what is used meanwhile is written when it does", path_,
      Waited() / std::chrono::seconds{1});
}

HistoryState HistoryKeeper::state() const {
  HistoryState state{kStateNames[state_], error_, path_, lost_vfs_};
  const std::string hang = on() ? HangText() : std::string();
  if (!hang.empty()) {
    state.name = kStateNames[kFailing];
    state.error = hang;
  }
  return state;
}

void HistoryKeeper::LookForHang() {
  const std::string hang = on() ? HangText() : std::string();
  if (!hang.empty() && !std::exchange(told_of_hang_, true)) LOG(kError, "{}", hang);
}

bool HistoryKeeper::Leave(Ns limit) {
  // Only the thread closes the file: that may wait for the disk as well.
  if (worker_.Post([on_thread = std::exchange(on_thread_, nullptr)] { on_thread->history.reset(); }) &&
      worker_.Leave(limit))
    return true;
  LOG(kError, "usage history {}: the disk did not answer within {} ms: what was used since the last write is lost",
      path_, limit / std::chrono::milliseconds{1});
  return false;
}

}  // namespace vgpud::daemon
