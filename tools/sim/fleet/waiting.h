// SPDX-License-Identifier: Apache-2.0
// Jobs that wait, in order of submission. Jobs that ask for the same are in one line, so that a look through all of
// them costs as much as there are lines.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace vgpud::tools::fleet {

class Waiting {
 public:
  enum class Answer : uint8_t {
    kStarted,  // and out of the queue
    kStays,    // as do all that ask for the same
  };

  // `number` grows with submission; jobs with the same `line` ask for the same.
  void Push(uint64_t line, uint32_t number) {
    lines_[line].push_back(number);
    ++count_;
  }
  // Asks `start` of each job in order, without those behind one of the same line that stays.
  void ForEach(const std::function<Answer(uint32_t number)>& start);
  size_t count() const { return count_; }

 private:
  std::map<uint64_t, std::deque<uint32_t>> lines_;
  size_t count_ = 0;
};

}  // namespace vgpud::tools::fleet
