// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fleet/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>

namespace vgpud::tools::fleet {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr size_t kMostLines = 10'000'000;
constexpr size_t kMostJobs = 1'000'000;
constexpr size_t kMostTenants = 1000;
constexpr size_t kMostErrors = 10;
constexpr int64_t kLatest = 10 * 365 * kDay;
constexpr size_t kLongestName = 128;

enum Column : size_t { kName, kGpus, kPart, kQos, kCreated, kDeleted, kScheduled, kColumns };
constexpr std::array<std::string_view, kColumns> kHeadings = {"name",          "num_gpu",       "gpu_milli",     "qos",
                                                              "creation_time", "deletion_time", "scheduled_time"};

struct Field {
  std::string_view text;
  size_t column;  // where it begins in its line, from 1
};

std::vector<Field> Split(std::string_view line) {
  std::vector<Field> fields;
  size_t begin = 0;
  for (size_t at = 0; at <= line.size(); ++at) {
    if (at < line.size() && line[at] != ',') continue;
    fields.push_back({line.substr(begin, at - begin), begin + 1});
    begin = at + 1;
  }
  return fields;
}

bool Printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

class Reader {
 public:
  Reader(std::istream& in, const std::string& file) : in_(in), file_(file) {}

  Result<JobList> Read() {
    std::string line;
    if (!Next(line)) Wrong(1, "the file is empty; its first line names the columns");
    if (line.size() > kLongestLine) Stop(kLongestLine + 1, "characters in a line", kLongestLine);
    if (errors_.empty()) ReadHeadings(line);
    if (!errors_.empty()) return Fail(std::errc::invalid_argument, errors_);
    while (!stop_ && wrong_ < kMostErrors && Next(line)) ReadLine(line);
    if (in_.bad()) Wrong(1, "could not be read to its end");
    if (wrong_ == 0 && list_.jobs.empty()) Wrong(1, "no job in this file ran on a GPU");
    if (!errors_.empty()) return Fail(std::errc::invalid_argument, errors_);
    std::stable_sort(list_.jobs.begin(), list_.jobs.end(),
                     [](const FleetJob& a, const FleetJob& b) { return a.arrival < b.arrival; });
    return std::move(list_);
  }

 private:
  // The next line into `line`; of one that is too long only the beginning.
  bool Next(std::string& line) {
    line.clear();
    for (int c = in_.get(); c != std::istream::traits_type::eof(); c = in_.get()) {
      if (c == '\n') return ++number_, Trim(line);
      line.push_back(static_cast<char>(c));
      if (line.size() > kLongestLine) return ++number_, true;
    }
    return !line.empty() && (++number_, Trim(line));
  }
  static bool Trim(std::string& line) {
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }

  void Wrong(size_t column, std::string_view why) {
    if (++wrong_ > kMostErrors) return;
    errors_ +=
        fmt::format("{}{}:{}:{}: {}", errors_.empty() ? "" : "\n", file_, std::max<size_t>(number_, 1), column, why);
  }

  // Nothing after this is worth reading.
  void Stop(size_t column, std::string_view what, size_t most) {
    Wrong(column, fmt::format("a trace has {} {} at most", most, what));
    stop_ = true;
  }

  void ReadHeadings(std::string_view line) {
    const std::vector<Field> fields = Split(line);
    for (size_t i = 0; i < kColumns; ++i) {
      const auto found =
          std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.text == kHeadings[i]; });
      if (found == fields.end()) return Wrong(1, fmt::format("no column \"{}\"", kHeadings[i]));
      places_[i] = static_cast<size_t>(found - fields.begin());
    }
    fields_ = fields.size();
  }

  std::optional<int64_t> Number(const Field& field, Column column, int64_t most) {
    int64_t value = 0;
    const char* end = field.text.data() + field.text.size();
    const auto [stop, error] = std::from_chars(field.text.data(), end, value);
    if (error == std::errc() && stop == end && value >= 0 && value <= most) return value;
    Wrong(field.column, fmt::format("{} must be a whole number from 0 to {}", kHeadings[column], most));
    return std::nullopt;
  }

  void ReadLine(std::string_view line) {
    if (line.size() > kLongestLine) return Stop(kLongestLine + 1, "characters in a line", kLongestLine);
    if (number_ > kMostLines) return Stop(1, "lines", kMostLines);
    const auto bad = std::find_if(line.begin(), line.end(), [](char c) { return !Printable({&c, 1}) || c == '"'; });
    if (bad != line.end())
      return Wrong(static_cast<size_t>(bad - line.begin()) + 1, "only plain printable characters without \" are read");
    const std::vector<Field> fields = Split(line);
    if (fields.size() != fields_)
      return Wrong(line.size() + 1, fmt::format("{} columns, the first line names {}", fields.size(), fields_));
    std::array<Field, kColumns> row;
    for (size_t i = 0; i < kColumns; ++i) row[i] = fields[places_[i]];
    AddJob(row);
  }

  void AddJob(const std::array<Field, kColumns>& row) {
    FleetJob job;
    if (row[kName].text.empty() || row[kName].text.size() > kLongestName)
      return Wrong(row[kName].column, fmt::format("a name has 1 to {} characters", kLongestName));
    job.name = row[kName].text;
    const auto gpus = Number(row[kGpus], kGpus, 64);
    if (!gpus) return;
    const auto part = Number(row[kPart], kPart, kWholeGpu);
    if (!part) return;
    const auto created = Number(row[kCreated], kCreated, kLatest);
    if (!created) return;
    const auto deleted = Number(row[kDeleted], kDeleted, kLatest);
    if (!deleted) return;
    if (*deleted < *created) return Wrong(row[kDeleted].column, "deletion_time is before creation_time");
    list_.end = std::max(list_.end, *deleted);
    if (*gpus == 0) return void(++list_.without_gpu);
    if (*part == 0) return Wrong(row[kPart].column, "gpu_milli is 0 although num_gpu is not");
    if (*gpus > 1 && *part != kWholeGpu)
      return Wrong(row[kPart].column, fmt::format("gpu_milli must be 1000 where num_gpu is {}", *gpus));
    if (row[kScheduled].text.empty()) return void(++list_.never_started);
    const auto scheduled = Number(row[kScheduled], kScheduled, kLatest);
    if (!scheduled) return;
    if (*scheduled < *created || *scheduled > *deleted)
      return Wrong(row[kScheduled].column, "scheduled_time is not between creation_time and deletion_time");
    if (!Tenant(row[kQos], &job.tenant)) return;
    if (list_.jobs.size() == kMostJobs) return Stop(1, "jobs", kMostJobs);
    job.arrival = *created;
    job.duration = std::max<Seconds>(*deleted - *scheduled, 1);
    job.gpus = static_cast<uint32_t>(*gpus);
    job.part = job.work = static_cast<uint32_t>(*part);
    job.training = row[kQos].text == "BE";
    list_.jobs.push_back(std::move(job));
  }

  bool Tenant(const Field& field, uint32_t* tenant) {
    const auto [row, added] = tenants_.try_emplace(std::string(field.text), list_.tenants.size());
    *tenant = row->second;
    if (!added) return true;
    list_.tenants.push_back(row->first);
    if (!field.text.empty() && field.text.size() <= kLongestName && tenants_.size() <= kMostTenants) return true;
    Wrong(field.column, fmt::format("qos has 1 to {} characters and {} values at most", kLongestName, kMostTenants));
    return false;
  }

  std::istream& in_;
  const std::string& file_;
  size_t number_ = 0;  // of the line that was read last
  size_t fields_ = 0;
  std::array<size_t, kColumns> places_{};
  std::map<std::string, uint32_t> tenants_;
  JobList list_;
  std::string errors_;
  size_t wrong_ = 0;
  bool stop_ = false;
};

}  // namespace

Result<JobList> ReadTrace(std::istream& in, const std::string& name) { return Reader(in, name).Read(); }

Result<JobList> ReadTrace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return FailErrno(path);
  return ReadTrace(file, path);
}

}  // namespace vgpud::tools::fleet
