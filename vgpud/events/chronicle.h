// SPDX-License-Identifier: Apache-2.0
// What clients can read of the past: events of VFs and GPUs, and the lines that processes of VFs logged. In memory: a
// new vgpud begins anew. Any thread, but for WakeReaders.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vgpud/events/record_log.h"

namespace vgpud::daemon {

class Chronicle {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Chronicle>> Make();

  const std::shared_ptr<RecordLog>& events() const { return events_; }
  const std::shared_ptr<RecordLog>& lines() const { return lines_; }
  // An event, from here on.
  void Add(Record event) const { events_->Add(std::move(event)); }
  // A process of the VF wrote `line`: keeps it, and makes an event of a kernel's failure.
  void Heard(const std::string& vf, const std::string& gpu, pid_t pid, std::string_view line) const;

  // Readable when something was added.
  int wake() const { return wake_.get(); }
  // Then. Main thread.
  void WakeReaders();

 private:
  Chronicle(UniqueFd wake, std::shared_ptr<RecordLog> events, std::shared_ptr<RecordLog> lines)
      : wake_(std::move(wake)), events_(std::move(events)), lines_(std::move(lines)) {}

  const UniqueFd wake_;
  const std::shared_ptr<RecordLog> events_;
  const std::shared_ptr<RecordLog> lines_;
};

}  // namespace vgpud::daemon
