// SPDX-License-Identifier: Apache-2.0
// One statement of SQL, prepared, run and read. Of the history alone.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "vgpud/history/usage.h"

namespace vgpud::daemon {

// Parameters are bound and columns read in order.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    ok_ = ::sqlite3_prepare_v2(database, sql.c_str(), -1, &raw_, nullptr) == SQLITE_OK;
  }
  ~Statement() { ::sqlite3_finalize(raw_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Bind(uint64_t value) {
    ok_ = ok_ && ::sqlite3_bind_int64(raw_, ++bound_, static_cast<int64_t>(value)) == SQLITE_OK;
  }
  void Bind(const std::string& text) {
    ok_ = ok_ && ::sqlite3_bind_text(raw_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT) ==
                     SQLITE_OK;
  }
  // Is there a row? `*failed` if that cannot be said.
  bool Row(bool* failed) {
    const int code = ok_ ? ::sqlite3_step(raw_) : SQLITE_ERROR;
    column_ = 0;
    *failed = code != SQLITE_ROW && code != SQLITE_DONE;
    return code == SQLITE_ROW;
  }
  bool Done() {
    bool failed = false;
    while (Row(&failed)) {
    }
    return !failed;
  }
  uint64_t Number() { return static_cast<uint64_t>(std::max<int64_t>(0, ::sqlite3_column_int64(raw_, column_++))); }
  std::string Text() {
    const auto* text = reinterpret_cast<const char*>(::sqlite3_column_text(raw_, column_++));
    return text != nullptr ? text : "";
  }
  LatencyHistogram Histogram() { return HistogramFromText(Text()).value_or(LatencyHistogram{}); }

 private:
  sqlite3_stmt* raw_ = nullptr;
  bool ok_ = false;
  int bound_ = 0;
  int column_ = 0;
};

}  // namespace vgpud::daemon
