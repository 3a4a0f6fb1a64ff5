// SPDX-License-Identifier: Apache-2.0
// The latest records, in memory, within two limits: one VF's records take so many bytes, and all together so many. The
// VF that takes most loses its oldest record first, so a VF that writes without end pushes out its own. Records have
// numbers without gaps, and readers learn how many they missed. Any thread, but for Reader.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "vgpud/events/record.h"

namespace vgpud::daemon {

class RecordLog : public std::enable_shared_from_this<RecordLog> {
 public:
  struct Limits {
    size_t each;  // bytes of one VF, and of all that is about GPUs
    size_t all;
  };
  // Which records a reader wants.
  struct Query {
    uint64_t after = 0;   // only those with a higher number
    std::string vf = {};  // empty: all
  };
  struct Page {
    std::vector<Record> records;  // in the order of their numbers
    uint64_t missed = 0;          // records that the reader wanted and that are no longer kept
    uint64_t next = 0;            // what to ask for next as `after`
  };
  // `wake`: an eventfd that is signalled after each Add.
  RecordLog(const Limits& limits, UniqueFd wake) : limits_(limits), wake_(std::move(wake)) {}
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;

  void Add(Record record);
  // Everything that is kept of what `query` wants. Of one VF after a number `missed` may be too high, never too low.
  Page Read(const Query& query) const;
  // The latest `most` of one VF.
  std::vector<Record> LatestOf(const std::string& vf, size_t most) const;

  // Reads on and on. `missed` counts exactly what was pushed out before this reader took it. Main thread; must not
  // outlive the thread's loop.
  class Reader {
   public:
    Reader(std::shared_ptr<RecordLog> log, const Query& query);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    // What came since the last call, the first of it up to about `most_bytes`; no record: nothing came.
    Page Next(size_t most_bytes);
    // Called by WakeReaders from now on, when there may be something to read.
    void OnAdded(std::function<void()> added) { added_ = std::move(added); }

   private:
    friend class RecordLog;
    bool Wants(const Record& record) const {
      return record.number > query_.after && (query_.vf.empty() || query_.vf == record.vf);
    }
    const std::shared_ptr<RecordLog> log_;
    Query query_;          // under the log's mutex
    uint64_t missed_ = 0;  // under the log's mutex
    std::function<void()> added_ = [] {};
  };
  // After `wake` was signalled. Main thread.
  void WakeReaders();

 private:
  struct OfVf {
    std::deque<Record> records;
    size_t bytes = 0;
    uint64_t dropped = 0;       // so many
    uint64_t last_dropped = 0;  // the number of the last
  };
  static size_t Bytes(const Record& record);
  void MakeRoom(OfVf& latest);
  void DropOldest(OfVf& of);
  // Both with the mutex held; without `missed`.
  Page Collect(const Query& query, size_t most_bytes) const;
  uint64_t Missed(const Query& query) const;

  const Limits limits_;
  const UniqueFd wake_;
  mutable std::mutex mutex_;
  std::map<std::string, OfVf> vfs_;  // by name; "" is what is about GPUs
  size_t bytes_ = 0;
  uint64_t last_ = 0;
  std::list<Reader*> readers_;  // changed on the main thread only
};

}  // namespace vgpud::daemon
