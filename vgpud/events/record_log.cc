// SPDX-License-Identifier: Apache-2.0
#include "vgpud/events/record_log.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/log.h"

namespace vgpud::daemon {
namespace {

// What a value may take beside the record itself.
constexpr size_t kBytesOfChange = sizeof(Change) + 64;

uint64_t UnixMs() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(since / std::chrono::milliseconds{1});
}

}  // namespace

size_t RecordLog::Bytes(const Record& record) {
  return sizeof(Record) + record.vf.size() + record.gpu.size() + record.by.size() + record.text.size() +
         record.changes.size() * kBytesOfChange;
}

void RecordLog::Add(Record record) {
  record.text = EscapeForLog(record.text);
  if (record.unix_ms == 0) record.unix_ms = UnixMs();
  const std::lock_guard lock{mutex_};
  record.number = ++last_;
  OfVf& of = vfs_[record.vf];
  const size_t bytes = Bytes(record);
  of.records.push_back(std::move(record));
  of.bytes += bytes;
  bytes_ += bytes;
  MakeRoom(of);
  SignalEventFd(wake_.get());
}

// The record that has just come may be the only one of its VF, and goes as well where all others are smaller.
void RecordLog::MakeRoom(OfVf& latest) {
  while (latest.bytes > limits_.each) DropOldest(latest);
  while (bytes_ > limits_.all) {
    const auto greediest = std::max_element(
        vfs_.begin(), vfs_.end(), [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    DropOldest(greediest->second);
  }
  std::erase_if(vfs_, [](const auto& of) { return of.second.records.empty(); });
}

void RecordLog::DropOldest(OfVf& of) {
  const Record& oldest = of.records.front();
  for (Reader* const reader : readers_)
    if (reader->Wants(oldest)) ++reader->missed_;
  const size_t bytes = Bytes(oldest);
  of.bytes -= bytes;
  bytes_ -= bytes;
  ++of.dropped;
  of.last_dropped = oldest.number;
  of.records.pop_front();
}

RecordLog::Page RecordLog::Collect(const Query& query, size_t most_bytes) const {
  std::vector<const Record*> wanted;
  for (const auto& [vf, of] : vfs_) {
    if (!query.vf.empty() && query.vf != vf) continue;
    const auto first = std::partition_point(of.records.begin(), of.records.end(),
                                            [&](const Record& record) { return record.number <= query.after; });
    for (auto it = first; it != of.records.end(); ++it) wanted.push_back(&*it);
  }
  std::sort(wanted.begin(), wanted.end(), [](const Record* a, const Record* b) { return a->number < b->number; });
  Page page;
  page.next = last_;
  size_t bytes = 0;
  for (const Record* const record : wanted) {
    if (bytes >= most_bytes) {
      page.next = page.records.back().number;
      break;
    }
    bytes += Bytes(*record);
    page.records.push_back(*record);
  }
  return page;
}

// Numbers have no gaps: of all VFs together the records that are not kept were pushed out.
uint64_t RecordLog::Missed(const Query& query) const {
  if (!query.vf.empty()) {
    const auto of = vfs_.find(query.vf);
    if (of == vfs_.end() || of->second.last_dropped <= query.after) return 0;
    return std::min(of->second.dropped, of->second.last_dropped - query.after);
  }
  uint64_t kept = 0;
  for (const auto& [vf, of] : vfs_)
    for (auto it = of.records.rbegin(); it != of.records.rend() && it->number > query.after; ++it) ++kept;
  return last_ - std::min(last_, query.after) - kept;
}

RecordLog::Page RecordLog::Read(const Query& query) const {
  const std::lock_guard lock{mutex_};
  Page page = Collect(query, std::numeric_limits<size_t>::max());
  page.missed = Missed(query);
  return page;
}

std::vector<Record> RecordLog::LatestOf(const std::string& vf, size_t most) const {
  const std::lock_guard lock{mutex_};
  const auto of = vfs_.find(vf);
  if (of == vfs_.end()) return {};
  const auto& all = of->second.records;
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(most, all.size())), all.end()};
}

RecordLog::Reader::Reader(std::shared_ptr<RecordLog> log, const Query& query) : log_(std::move(log)), query_(query) {
  const std::lock_guard lock{log_->mutex_};
  missed_ = log_->Missed(query_);
  log_->readers_.push_back(this);
}

RecordLog::Reader::~Reader() {
  const std::lock_guard lock{log_->mutex_};
  log_->readers_.remove(this);
}

RecordLog::Page RecordLog::Reader::Next(size_t most_bytes) {
  const std::lock_guard lock{log_->mutex_};
  Page page = log_->Collect(query_, most_bytes);
  query_.after = page.next;
  page.missed = std::exchange(missed_, 0);
  return page;
}

void RecordLog::WakeReaders() {
  std::vector<std::function<void()>> added;
  for (const Reader* const reader : readers_) added.push_back(reader->added_);
  for (const auto& call : added) call();
}

}  // namespace vgpud::daemon
