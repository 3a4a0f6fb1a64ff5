// SPDX-License-Identifier: Apache-2.0
// The usage history: what each VF has used in all and per day (UTC), in one SQLite file. One thread at a
// time; no clock, the caller says what time it is. What a VF has used is known by the VF's uuid; a VF that was not
// destroyed is found again by its name, so that a restarted daemon goes on counting where the one before stopped.
//
// The file is bounded. A VF that never ran leaves nothing when it is destroyed; those that lived for a moment, and
// those beyond so many of one tenant and day, are added up in one row per tenant and day. Days are kept for so long,
// and the oldest are dropped earlier when the file gets too large.
//
// The file belongs to one daemon at a time. It is written in transactions (write-ahead log): after a crash it holds
// what the last Write held.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "vgpud/history/usage.h"
#include "vgpud/host/share_limits.h"
#include "vgpud/model/vf_domain.h"

struct sqlite3;

namespace vgpud::daemon {

class Statement;

class History {
 public:
  static constexpr int kSchemaVersion = 5;
  static constexpr int64_t kKeepDays = 400;  // and no longer, so that the file does not grow for ever
  static constexpr Ns kBriefLife = std::chrono::seconds{10};
  static constexpr const char* kBriefName = "(short-lived)";  // of the row of all of them
  // Destroyed VFs of one tenant with rows of their own, per day; of those that no tenant's users made.
  static constexpr uint32_t kMostOfATenant = share_limits::kHistoryRowsPerDay;
  static constexpr uint32_t kMostOfAdministrators = 25 * kMostOfATenant;
  // `max_pages`: the file never gets larger than this many pages of 4 KiB (but one that is keeps its size until its
  // oldest days have been dropped); 0 = as large as the disk takes.
  // The error says what to do: the file is damaged, foreign, of a newer vgpud, in use, or cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<History>> Open(const std::string& path, int max_pages = 0);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  struct Vf {
    std::string uuid;
    std::string name;
    VfStats usage;           // in all
    bool destroyed = false;  // by an operator: a VF of this name is another one from then on
    VfDomain domain = {};    // of libvirt, that had it last
    std::string tenant = {};
    Ns lived = Ns::max();    // as far as it is known, since it was made
    std::string users = {};  // those who made it, and make as many as they like: a tenant's, or one; empty: root
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
    Vf vf;             // with the usage of that day
    uint64_t vfs = 1;  // that are added up in it
    // All VFs of its tenant that lived for a moment, or that were too many for rows of their own.
    bool is_sum() const { return vf.name == kBriefName; }
  };
  // Where a page of a report ended.
  struct Place {
    std::string day;
    std::string uuid;
  };
  static Place PlaceOf(const Day& row) { return {row.day, row.vf.uuid}; }
  static constexpr size_t kAll = SIZE_MAX;
  // Of the days from..to, both included, at most `most` rows after `after`, in the order of day and UUID.
  [[nodiscard]] Result<std::vector<Day>> Report(const std::string& from, const std::string& to, size_t most = kAll,
                                                const Place& after = Place());

  const std::string& path() const { return path_; }

 private:
  History(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  Result<void> Prepare(int max_pages);
  Result<void> Upgrade(int64_t from);
  Result<void> Execute(const std::string& sql);
  Result<int64_t> Number(const std::string& sql);
  std::optional<Vf> NextKnown(Statement& query, bool* failed);
  Result<void> Run(const std::string& sql, const std::vector<std::string>& parameters);
  Result<void> DropOld(const std::string& today);
  // --- how large it gets (history_bounds.cc) ---
  struct Pages {
    int64_t in_file = 0;
    int64_t used = 0;
  };
  Result<Pages> CountPages();
  // Drops some of the oldest days, while there are too many pages.
  Result<void> Trim(const std::string& today);
  // Gives what is free of a file that is too large back to the disk, once nothing but that is left of what was too
  // much.
  Result<void> Shrink();
  // What is left of one that is destroyed.
  Result<void> Settle(const Vf& vf, int64_t unix_seconds);
  Result<bool> HasRowOfItsOwn(const Vf& vf, const std::string& day);
  Result<void> AddToSum(const Vf& vf, int64_t unix_seconds);
  Result<void> Erase(const Vf& vf, int64_t unix_seconds);
  Result<void> WriteVf(const Vf& vf, const std::string& day, int64_t unix_seconds);
  tl::unexpected<Error> Failure(const char* doing) const;

  const std::string path_;
  sqlite3* const database_;
  std::string dropped_on_;                  // the day on which old days were dropped last
  std::map<std::string, VfStats> written_;  // by uuid, as the file has it
  int max_pages_ = 0;
  std::string shrunk_on_;                      // the day on which that was tried last
  std::string counted_on_;                     // the day of destroyed_
  std::map<std::string, uint32_t> destroyed_;  // by users, else by tenant: rows of their own on that day
};

}  // namespace vgpud::daemon
