// SPDX-License-Identifier: Apache-2.0
// What keeps the history small: what is left of VFs that are gone, and how large the file may be.
#include <fmt/core.h>

#include "vgpud/history/day.h"
#include "vgpud/history/history.h"
#include "vgpud/history/statement.h"

namespace vgpud::daemon {
namespace {

constexpr uint64_t kTrimAtOnce = 20'000;  // rows that one write drops
constexpr int64_t kDaySeconds = 24 * 60 * 60;
constexpr Ns kDay = std::chrono::seconds{kDaySeconds};

// So much of the file may be used: what one write adds has to fit in as well.
int64_t MostUsed(int max_pages) { return int64_t{max_pages} * 7 / 8; }

bool NeverRan(const VfStats& usage) { return usage.account.received_ns == 0 && usage.account.slices == 0; }

std::string SumOf(const std::string& tenant) { return "sum/" + tenant; }

}  // namespace

Result<History::Pages> History::CountPages() {
  Pages pages;
  pages.in_file = TRY(Number("PRAGMA page_count"));
  pages.used = pages.in_file - TRY(Number("PRAGMA freelist_count"));
  return pages;
}

Result<void> History::Trim(const std::string& today) {
  if (max_pages_ == 0 || TRY(CountPages()).used <= MostUsed(max_pages_)) return {};
  TRY(Run(fmt::format("DELETE FROM day WHERE (day, uuid) IN (SELECT day, uuid FROM day WHERE day < ? "
                      "ORDER BY day, uuid LIMIT {})",
                      kTrimAtOnce),
          {today}));
  // A VF was seen last on its last day.
  return Run(fmt::format("DELETE FROM vf WHERE uuid IN (SELECT uuid FROM vf WHERE destroyed != 0 AND seen < "
                         "(SELECT coalesce(unixepoch(min(day)), 0) FROM day) LIMIT {})",
                         kTrimAtOnce),
             {});
}

Result<void> History::Shrink() {
  if (max_pages_ == 0) return {};
  const Pages pages = TRY(CountPages());
  if (pages.in_file <= max_pages_ || pages.used > max_pages_) return {};
  return Execute(fmt::format("VACUUM; PRAGMA max_page_count = {}", max_pages_));
}

Result<void> History::Settle(const Vf& vf, int64_t unix_seconds) {
  if (NeverRan(vf.usage)) return Erase(vf, unix_seconds);
  const std::string today = DayOf(unix_seconds);
  TRY(WriteVf(vf, today, unix_seconds));
  if (TRY(HasRowOfItsOwn(vf, today))) return {};
  TRY(AddToSum(vf, unix_seconds));
  return Erase(vf, unix_seconds);
}

// One that lived for days has one in any case: a tenant cannot have many of those. One that lived for a moment has
// none, but where no tenant's users made it: then an administrator did, or it is the VF of a short job.
Result<bool> History::HasRowOfItsOwn(const Vf& vf, const std::string& day) {
  if (vf.lived >= kDay) return true;
  if (!vf.users.empty() && vf.lived < kBriefLife) return false;
  if (counted_on_ != day) {
    destroyed_.clear();
    Statement query(database_,
                    "SELECT vf.tenant, count(*) FROM day CROSS JOIN vf ON vf.uuid = day.uuid "
                    "WHERE day.day = ? AND vf.destroyed != 0 AND vf.uuid != ? GROUP BY vf.tenant");
    query.Bind(day);
    query.Bind(vf.uuid);
    bool failed = false;
    while (query.Row(&failed)) {
      const std::string tenant = query.Text();
      destroyed_[tenant] = static_cast<uint32_t>(query.Number());
    }
    if (failed) return Failure("cannot read it");
    counted_on_ = day;
  }
  uint32_t& count = destroyed_[vf.users.empty() ? vf.tenant : vf.users];
  if (count >= (!vf.users.empty() ? kMostOfATenant : kMostOfAdministrators)) return false;
  ++count;
  return true;
}

// Its life was short: it has rows of no other days than these.
Result<void> History::AddToSum(const Vf& vf, int64_t unix_seconds) {
  const std::string sum = SumOf(vf.tenant);
  TRY(Run(fmt::format("INSERT INTO vf (uuid, name, destroyed, seen, tenant) VALUES (?, ?, 1, {}, ?) "
                      "ON CONFLICT (uuid) DO UPDATE SET seen = excluded.seen",
                      unix_seconds),
          {sum, kBriefName, vf.tenant}));
  return Run(fmt::format("INSERT INTO day (day, uuid, vfs{0}) SELECT day, ?, 1{0} FROM day WHERE uuid = ? AND "
                         "day IN (?, ?) ON CONFLICT (day, uuid) DO UPDATE SET vfs = vfs + 1, {1}",
                         UsageColumns(", {}", false), AddedColumns()),
             {sum, vf.uuid, DayOf(unix_seconds), DayOf(unix_seconds - kDaySeconds)});
}

Result<void> History::Erase(const Vf& vf, int64_t unix_seconds) {
  // The table has no order by VF: one that is known to be young has its rows among the last.
  const std::string first = vf.lived < kDay ? DayOf(unix_seconds - kDaySeconds) : std::string();
  TRY(Run("DELETE FROM day WHERE uuid = ? AND day >= ?", {vf.uuid, first}));
  return Run("DELETE FROM vf WHERE uuid = ?", {vf.uuid});
}

}  // namespace vgpud::daemon
