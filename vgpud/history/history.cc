// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/history.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "vgpud/history/day.h"
#include "vgpud/history/statement.h"

namespace vgpud::daemon {
namespace {

constexpr int64_t kMostLogBytes = 16 << 20;  // of the write-ahead log, at rest
constexpr int kApplicationId = 0x76475055;   // "vGPU"

std::string Schema() {
  std::string counters, histograms;
  for (const VfStatistic* row : UsageStatistics())
    counters += fmt::format(", {} INTEGER NOT NULL DEFAULT 0", row->about.column);
  for (const VfHistogram& histogram : VfHistograms())
    histograms += fmt::format(", {} TEXT NOT NULL DEFAULT '0 0'", histogram.column);
  return fmt::format(
      "BEGIN IMMEDIATE;"
      "CREATE TABLE vf (uuid TEXT PRIMARY KEY, name TEXT NOT NULL, destroyed INTEGER NOT NULL, seen INTEGER NOT NULL,"
      " domain TEXT NOT NULL DEFAULT '', domain_uuid TEXT NOT NULL DEFAULT '', tenant TEXT NOT NULL DEFAULT ''{0}{1})"
      " WITHOUT ROWID;"
      "CREATE INDEX vf_name ON vf (name) WHERE destroyed = 0;"
      "CREATE TABLE day (day TEXT NOT NULL, uuid TEXT NOT NULL REFERENCES vf (uuid), vfs INTEGER NOT NULL DEFAULT 1{0},"
      " PRIMARY KEY (day, uuid)) WITHOUT ROWID;"
      "CREATE TABLE gpu (id INTEGER PRIMARY KEY CHECK (id = 0), run_ns INTEGER NOT NULL, switch_ns INTEGER NOT NULL,"
      " idle_ns INTEGER NOT NULL, switches TEXT NOT NULL);"
      "INSERT INTO gpu VALUES (0, 0, 0, 0, '0 0');"
      "PRAGMA application_id = {2}; PRAGMA user_version = {3};"
      "COMMIT",
      counters, histograms, kApplicationId, History::kSchemaVersion);
}

// The file is the daemon's own and nobody else's to read. What is wrong otherwise is left to SQLite to say.
Result<void> KeepPrivate(const std::string& path) {
  const UniqueFd file{::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640)};
  if (!file && errno == ELOOP)
    return Fail(std::errc::too_many_symbolic_link_levels,
                fmt::format("usage history {}: it is a link, which could lead anywhere: remove it, or name another "
                            "--state-dir, and restart vgpud",
                            path));
  if (file && ::fchmod(file.get(), 0640) != 0)
    return FailErrno(fmt::format("usage history {}: cannot set its mode to 0640 (whose file is it?)", path));
  return {};
}

bool Damaged(int code) { return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB; }

}  // namespace

tl::unexpected<Error> History::Failure(const char* doing) const {
  const int code = ::sqlite3_extended_errcode(database_);
  const std::string why = fmt::format("usage history {}: {}: {}", path_, doing, ::sqlite3_errmsg(database_));
  if (Damaged(code))
    return Fail(
        std::errc::bad_message,
        why + "; the file is damaged or not a database: move it away and restart vgpud, which begins a new one");
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Fail(std::errc::no_space_on_device, why + "; make room, nothing is lost as long as vgpud runs");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Fail(std::errc::device_or_resource_busy,
                  why + "; another vgpud or program has it open: stop that, or give this vgpud another --state-dir");
    default:
      return Fail(std::errc::io_error, why + "; check that the directory is there, writable and not full");
  }
}

Result<std::unique_ptr<History>> History::Open(const std::string& path, int max_pages) {
  TRY(KeepPrivate(path));
  // SQLite takes no link anywhere in the path; only the file itself must not be one.
  std::error_code ignored;
  const std::filesystem::path given(path);
  const auto directory = std::filesystem::canonical(given.has_parent_path() ? given.parent_path() : ".", ignored);
  const std::string real = ignored ? path : (directory / given.filename()).string();
  sqlite3* database = nullptr;
  const int code = ::sqlite3_open_v2(
      real.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
      nullptr);
  std::unique_ptr<History> history{new History(path, database)};
  if (code != SQLITE_OK) return history->Failure("cannot open it");
  TRY(history->Prepare(max_pages));
  return history;
}

History::~History() { ::sqlite3_close_v2(database_); }

Result<void> History::Prepare(int max_pages) {
  // Exclusive: two daemons must not count into one file; and no shared memory file next to it.
  TRY(Execute("PRAGMA locking_mode = EXCLUSIVE"));
  if (TRY(Number("SELECT count(*) FROM sqlite_master")) == 0) {
    TRY(Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + Schema()));
  }
  if (TRY(Number("PRAGMA application_id")) != kApplicationId)
    return Fail(std::errc::bad_message,
                fmt::format("usage history {}: this is a database of another program: move it away or give vgpud "
                            "another --state-dir, then restart it",
                            path_));
  const int64_t version = TRY(Number("PRAGMA user_version"));
  if (version < 1 || version > kSchemaVersion)
    return Fail(
        std::errc::not_supported,
        fmt::format("usage history {}: it has version {}, this vgpud knows version {}: run the vgpud that wrote "
                    "it, or move it away and restart this one",
                    path_, version, kSchemaVersion));
  TRY(Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  Statement check(database_, "PRAGMA quick_check(1)");
  bool failed = false;
  const bool row = check.Row(&failed);
  if (failed) return Failure("cannot check it");
  if (const std::string verdict = row ? check.Text() : "no answer"; verdict != "ok")
    return Fail(std::errc::bad_message, fmt::format("usage history {}: the file is damaged ({}): move it away and "
                                                    "restart vgpud, which begins a new one",
                                                    path_, verdict));
  if (version < kSchemaVersion) TRY(Upgrade(version));
  max_pages_ = max_pages;
  if (max_pages > 0)
    TRY(Execute(fmt::format("PRAGMA max_page_count = {}; PRAGMA journal_size_limit = {}", max_pages, kMostLogBytes)));
  return {};
}

// Counters that a later version has more than an earlier one begin at 0, text is empty.
Result<void> History::Upgrade(int64_t from) {
  static constexpr struct {
    int since;
    const char* counter;
  } kAdded[] = {{2, "unclaimed_ns"},       {3, "active_ns"},        {3, "active_gpu_ns"},
                {3, "active_thinking_ns"}, {3, "active_others_ns"}, {3, "active_switching_ns"},
                {3, "active_stalled_ns"},  {3, "active_held_ns"}};
  std::string sql = "BEGIN IMMEDIATE;";
  for (const auto& added : kAdded)
    for (const char* table : {"vf", "day"})
      if (from < added.since)
        sql += fmt::format("ALTER TABLE {} ADD COLUMN {} INTEGER NOT NULL DEFAULT 0;", table, added.counter);
  for (const char* text : {"domain", "domain_uuid"})
    if (from < 4) sql += fmt::format("ALTER TABLE vf ADD COLUMN {} TEXT NOT NULL DEFAULT '';", text);
  if (from < 5)
    sql +=
        "ALTER TABLE vf ADD COLUMN tenant TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE day ADD COLUMN vfs INTEGER NOT NULL DEFAULT 1;";
  return Execute(sql + fmt::format("PRAGMA user_version = {}; COMMIT", kSchemaVersion));
}

Result<void> History::Execute(const std::string& sql) {
  if (::sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Failure("cannot write it");
  return {};
}

Result<int64_t> History::Number(const std::string& sql) {
  Statement query(database_, sql);
  bool failed = false;
  const bool row = query.Row(&failed);
  if (failed || !row) return Failure("cannot read it");
  return static_cast<int64_t>(query.Number());
}

// uuid, name, domain and all figures.
std::optional<History::Vf> History::NextKnown(Statement& query, bool* failed) {
  if (!query.Row(failed)) return std::nullopt;
  Vf vf;
  vf.uuid = query.Text();
  vf.name = query.Text();
  vf.domain.name = query.Text();
  vf.domain.uuid = query.Text();
  for (const VfStatistic* row : UsageStatistics()) row->set(vf.usage, query.Number());
  for (const VfHistogram& histogram : VfHistograms()) histogram.edit(vf.usage) = query.Histogram();
  written_[vf.uuid] = vf.usage;
  return vf;
}

Result<std::vector<History::Vf>> History::ReadKnown(size_t most) {
  Statement query(
      database_,
      fmt::format("SELECT uuid, name, domain, domain_uuid{} FROM vf WHERE destroyed = 0 ORDER BY seen DESC LIMIT {}",
                  UsageColumns(", {}", true), most));
  std::vector<Vf> vfs;
  bool failed = false;
  while (auto vf = NextKnown(query, &failed)) vfs.push_back(std::move(*vf));
  if (failed) return Failure("cannot read it");
  std::reverse(vfs.begin(), vfs.end());
  return vfs;
}

Result<std::optional<History::Vf>> History::Find(const std::string& name) {
  Statement query(database_, fmt::format("SELECT uuid, name, domain, domain_uuid{} FROM vf WHERE name = ? AND "
                                         "destroyed = 0 ORDER BY seen DESC LIMIT 1",
                                         UsageColumns(", {}", true)));
  query.Bind(name);
  bool failed = false;
  auto found = NextKnown(query, &failed);
  if (failed) return Failure("cannot read it");
  return found;
}

Result<History::Gpu> History::ReadGpu() {
  Statement query(database_, "SELECT run_ns, switch_ns, idle_ns, switches FROM gpu");
  bool failed = false;
  if (!query.Row(&failed)) return Failure("cannot read it");
  Gpu gpu;
  gpu.run_ns = query.Number();
  gpu.switch_ns = query.Number();
  gpu.idle_ns = query.Number();
  gpu.switches = query.Histogram();
  return gpu;
}

Result<void> History::Write(const std::vector<Vf>& vfs, const Gpu& gpu, int64_t unix_seconds) {
  TRY(Execute("BEGIN IMMEDIATE"));
  const std::string today = DayOf(unix_seconds);
  Result<void> written = Trim(today);
  for (const Vf& vf : vfs) {
    if (!written) break;
    written = vf.destroyed ? Settle(vf, unix_seconds) : WriteVf(vf, today, unix_seconds);
  }
  if (written) {
    Statement update(database_, "UPDATE gpu SET run_ns = ?, switch_ns = ?, idle_ns = ?, switches = ?");
    for (const uint64_t value : {gpu.run_ns, gpu.switch_ns, gpu.idle_ns}) update.Bind(value);
    update.Bind(ToText(gpu.switches));
    if (!update.Done()) written = Failure("cannot write it");
  }
  const bool drop = dropped_on_ != today;
  if (written && drop) written = DropOld(today);
  if (written) written = Execute("COMMIT");
  if (!written) {
    (void)Execute("ROLLBACK");  // a full disk has done it already
    counted_on_.clear();
    return written;
  }
  if (drop) dropped_on_ = today;
  for (const Vf& vf : vfs) {
    if (vf.destroyed)
      written_.erase(vf.uuid);
    else
      written_[vf.uuid] = vf.usage;
  }
  if (shrunk_on_ != today) {
    // Where it fails the file stays as large as it is: that is tried again on another day.
    shrunk_on_ = today;
    (void)Shrink();
  }
  return {};
}

Result<void> History::Run(const std::string& sql, const std::vector<std::string>& parameters) {
  Statement statement(database_, sql);
  for (const std::string& each : parameters) statement.Bind(each);
  if (!statement.Done()) return Failure("cannot write it");
  return {};
}

// By days that there are, not by what day it is: a clock that is wrong for a moment costs no day.
Result<void> History::DropOld(const std::string& today) {
  Statement days(database_,
                 "DELETE FROM day WHERE day != ? AND day < "
                 "(SELECT min(day) FROM (SELECT DISTINCT day FROM day ORDER BY day DESC LIMIT ?))");
  days.Bind(today);
  days.Bind(uint64_t{kKeepDays});
  if (!days.Done()) return Failure("cannot drop old days");
  Statement vfs(database_, "DELETE FROM vf WHERE destroyed != 0 AND uuid NOT IN (SELECT uuid FROM day)");
  if (!vfs.Done()) return Failure("cannot drop old VFs");
  return {};
}

Result<void> History::WriteVf(const Vf& vf, const std::string& day, int64_t unix_seconds) {
  Statement total(database_,
                  fmt::format("INSERT OR REPLACE INTO vf (uuid, name, destroyed, seen, domain, domain_uuid, tenant{}) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?{})",
                              UsageColumns(", {}", true), UsageColumns(", ?", true)));
  total.Bind(vf.uuid);
  total.Bind(vf.name);
  total.Bind(uint64_t{vf.destroyed});
  total.Bind(static_cast<uint64_t>(unix_seconds));
  total.Bind(vf.domain.name);
  total.Bind(vf.domain.uuid);
  total.Bind(vf.tenant);
  for (const VfStatistic* row : UsageStatistics()) total.Bind(row->get(vf.usage));
  for (const VfHistogram& histogram : VfHistograms()) total.Bind(ToText(histogram.get(vf.usage)));
  if (!total.Done()) return Failure("cannot write it");

  Statement of_day(database_, fmt::format("INSERT INTO day (day, uuid{}) VALUES (?, ?{}) ON CONFLICT (day, uuid) "
                                          "DO UPDATE SET {}",
                                          UsageColumns(", {}", false), UsageColumns(", ?", false), AddedColumns()));
  of_day.Bind(day);
  of_day.Bind(vf.uuid);
  const auto before = written_.find(vf.uuid);
  for (const VfStatistic* row : UsageStatistics()) {
    const uint64_t now = row->get(vf.usage);
    const uint64_t then = before != written_.end() ? row->get(before->second) : 0;
    if (row->about.worst)
      of_day.Bind(now > then ? now : 0);
    else
      of_day.Bind(now - std::min(now, then));
  }
  if (!of_day.Done()) return Failure("cannot write it");
  return {};
}

// By the key of the table, so that a page costs what it has, wherever it begins.
Result<std::vector<History::Day>> History::Report(const std::string& from, const std::string& to, size_t most,
                                                  const Place& after) {
  Statement query(
      database_,
      fmt::format("SELECT day.day, vf.uuid, vf.name, vf.destroyed, vf.domain, vf.domain_uuid, vf.tenant, day.vfs{} "
                  "FROM day CROSS JOIN vf ON vf.uuid = day.uuid "
                  "WHERE (day.day, day.uuid) > (?, ?) AND day.day <= ? ORDER BY day.day, day.uuid LIMIT ?",
                  UsageColumns(", day.{}", false)));
  query.Bind(after.day.empty() ? from : after.day);
  query.Bind(after.uuid);
  query.Bind(to);
  query.Bind(std::min<uint64_t>(most, INT64_MAX));
  std::vector<Day> days;
  bool failed = false;
  while (query.Row(&failed)) {
    Day day;
    day.day = query.Text();
    day.vf.uuid = query.Text();
    day.vf.name = query.Text();
    day.vf.destroyed = query.Number() != 0;
    day.vf.domain.name = query.Text();
    day.vf.domain.uuid = query.Text();
    day.vf.tenant = query.Text();
    day.vfs = query.Number();
    for (const VfStatistic* row : UsageStatistics()) row->set(day.vf.usage, query.Number());
    days.push_back(std::move(day));
  }
  if (failed) return Failure("cannot read it");
  return days;
}

}  // namespace vgpud::daemon
