// SPDX-License-Identifier: Apache-2.0
// The usage history: what each VF has used in all and per day (UTC), in one SQLite file. One thread at a
// time; no clock, the caller says what time it is. What a VF has used is known by the VF's uuid; a VF that was not
// destroyed is found again by its name, so that a restarted daemon goes on counting where the one before stopped.
//
// The file belongs to one daemon at a time. It is written in transactions (write-ahead log): after a crash it holds
// what the last Write held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vgpud/history/usage.h"
#include "vgpud/host/vf_domain.h"

struct sqlite3;

namespace vgpud::daemon {

class History {
 public:
  static constexpr int kSchemaVersion = 4;
  static constexpr int64_t kKeepDays = 400;  // and no longer, so that the file does not grow for ever
  // `max_pages`: the file never gets larger than this many pages of 4 KiB; 0 = as large as the disk takes.
  // The error says what to do: the file is damaged, foreign, of a newer vgpud, in use, or cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<History>> Open(const std::string& path, int max_pages = 0);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  struct Vf {
    std::string uuid;
    std::string name;
    GpuThread::VfStats usage;  // in all
    bool destroyed = false;    // by an operator: a VF of this name is another one from then on
    VfDomain domain = {};      // of libvirt, that had it last
  };
  // What the GPU itself did in all.
  struct Gpu {
    uint64_t run_ns = 0;
    uint64_t switch_ns = 0;
    uint64_t idle_ns = 0;
    LatencyHistogram switches;
  };
  // The VFs that were not destroyed, at most so many of those that were there last, which is the order.
  [[nodiscard]] Result<std::vector<Vf>> ReadKnown(size_t most);
  // The one of that name.
  [[nodiscard]] Result<std::optional<Vf>> Find(const std::string& name);
  [[nodiscard]] Result<Gpu> ReadGpu();
  // Takes down where all of them are; what is more than at the last Write counts for the day of `unix_seconds`. All or
  // nothing: after an error (a full disk) nothing is lost, the next Write has it all.
  [[nodiscard]] Result<void> Write(const std::vector<Vf>& vfs, const Gpu& gpu, int64_t unix_seconds);

  struct Day {
    std::string day;
    Vf vf;                 // with the usage of that day
    std::string gpu = {};  // where it was, if there are several: whoever reads several histories knows
  };
  // All days from..to, both included, in the order of day and name.
  [[nodiscard]] Result<std::vector<Day>> Report(const std::string& from, const std::string& to);

  const std::string& path() const { return path_; }

 private:
  class Statement;
  History(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  Result<void> Prepare(int max_pages);
  Result<void> Upgrade(int64_t from);
  Result<void> Execute(const std::string& sql);
  Result<int64_t> Number(const std::string& sql);
  std::optional<Vf> NextKnown(Statement& query, bool* failed);
  Result<void> DropOld(const std::string& today);
  Result<void> WriteVf(const Vf& vf, const std::string& day, int64_t unix_seconds);
  tl::unexpected<Error> Failure(const char* doing) const;

  const std::string path_;
  sqlite3* const database_;
  std::string dropped_on_;                             // the day on which old days were dropped last
  std::map<std::string, GpuThread::VfStats> written_;  // by uuid, as the file has it
};

}  // namespace vgpud::daemon
