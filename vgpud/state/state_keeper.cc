// SPDX-License-Identifier: Apache-2.0
#include "vgpud/state/state_keeper.h"

#include <fmt/core.h>

#include <future>
#include <utility>

#include "base/check.h"

namespace vgpud::daemon {

StateKeeper::StateKeeper(std::string directory, std::string suffix, TaskQueue& replies)
    : directory_(std::move(directory)), suffix_(std::move(suffix)), worker_("vgpud-state", 2, replies) {}

StateKeeper::~StateKeeper() = default;

std::vector<StateFiles::File> StateKeeper::Open(Ns limit, const std::string& what, const std::string& option) {
  struct Answer {
    std::shared_ptr<StateFiles> files;
    Result<std::vector<StateFiles::File>> read;
    std::promise<void> there;
  };
  auto answer = std::make_shared<Answer>();
  auto there = answer->there.get_future();
  const bool posted = worker_.Post([answer, directory = directory_, suffix = suffix_, what, option] {
    auto opened = StateFiles::Open(directory, what, option);
    if (opened) {
      answer->files = std::move(*opened);
      answer->read = answer->files->ReadAll(suffix);
    } else {
      answer->read = tl::unexpected(opened.error());
    }
    answer->there.set_value();
  });
  CHECK(posted);
  if (there.wait_for(limit) != std::future_status::ready)
    problem_ = fmt::format("{}: {}: the disk did not answer within {} ms: look after it and restart vgpud", what,
                           directory_, limit / std::chrono::milliseconds{1});
  else if (!answer->read)
    problem_ = answer->read.error().context;
  else
    problem_.clear();
  if (!problem_.empty()) return {};
  files_ = answer->files;
  for (const StateFiles::File& file : *answer->read)
    if (file.text) kept_[file.name] = *file.text;
  return std::move(*answer->read);
}

void StateKeeper::Put(const std::string& name, std::string text, Done done) {
  Want(name, std::move(text), std::move(done));
}

void StateKeeper::Remove(const std::string& name, Done done) { Want(name, std::nullopt, std::move(done)); }

void StateKeeper::Read(const std::string& name, std::function<void(const Result<std::string>&)> done) {
  if (!problem_.empty()) return done(Fail(std::errc::io_error, problem_));
  const auto text = std::make_shared<Result<std::string>>();
  const bool posted = worker_.Post([text, name, files = files_] { *text = files->Read(name); },
                                   [this, text, name, done] {
                                     // Somebody may have edited it.
                                     if (*text) kept_[name] = **text;
                                     if (!*text) kept_.erase(name);
                                     done(*text);
                                   });
  if (!posted) done(Fail(std::errc::resource_unavailable_try_again, "the disk is busy, try again"));
}

void StateKeeper::Want(const std::string& name, Text text, Done done) {
  if (!problem_.empty()) return done(Fail(std::errc::io_error, problem_));
  const auto kept = kept_.find(name);
  if (!next_.contains(name) && kept != kept_.end() && kept->second == text) return done({});
  Wanted& wanted = next_[name];
  wanted.text = std::move(text);
  wanted.waiting.push_back(std::move(done));
  if (!writing_) WriteNext();
}

void StateKeeper::WhenIdle(std::function<void()> done) {
  if (!writing_) return done();
  when_idle_.push_back(std::move(done));
}

void StateKeeper::WriteNext() {
  writing_ = !next_.empty();
  if (!writing_) {
    for (const auto& done : std::exchange(when_idle_, {})) done();
    return;
  }
  struct Batch {
    std::map<std::string, Wanted> wanted;
    std::map<std::string, Result<void>> results;
  };
  auto batch = std::make_shared<Batch>();
  batch->wanted = std::exchange(next_, {});
  // Not known until the answer is there.
  for (const auto& [name, wanted] : batch->wanted) kept_.erase(name);
  const bool posted = worker_.Post(
      [batch, files = files_] {
        for (const auto& [name, wanted] : batch->wanted)
          batch->results.emplace(name, wanted.text ? files->Replace(name, *wanted.text) : files->Remove(name));
      },
      [this, batch] {
        for (auto& [name, wanted] : batch->wanted) {
          const Result<void>& result = batch->results.at(name);
          if (result && wanted.text) kept_[name] = *wanted.text;
          for (const Done& done : wanted.waiting) done(result);
        }
        WriteNext();
      });
  CHECK(posted);
}

}  // namespace vgpud::daemon
