// SPDX-License-Identifier: Apache-2.0
#include "vgpud/events/chronicle.h"

#include "base/exec_link.h"

namespace vgpud::daemon {
namespace {

constexpr RecordLog::Limits kEventBytes{.each = 64 << 10, .all = 2 << 20};
constexpr RecordLog::Limits kLineBytes{.each = 128 << 10, .all = 16 << 20};

}  // namespace

Result<std::shared_ptr<Chronicle>> Chronicle::Make() {
  UniqueFd wake = TRY(MakeEventFd());
  auto events = std::make_shared<RecordLog>(kEventBytes, TRY(Dup(wake.get())));
  auto lines = std::make_shared<RecordLog>(kLineBytes, TRY(Dup(wake.get())));
  return std::shared_ptr<Chronicle>(new Chronicle(std::move(wake), std::move(events), std::move(lines)));
}

void Chronicle::Heard(const std::string& vf, const std::string& gpu, pid_t pid, std::string_view line) const {
  lines_->Add({.kind = nullptr, .vf = vf, .gpu = gpu, .pid = pid, .text = std::string(line)});
  if (const auto fault = KernelFaultIn(line))
    events_->Add({.kind = event_kind::kFault, .vf = vf, .gpu = gpu, .pid = pid, .text = std::string(*fault)});
}

void Chronicle::WakeReaders() {
  DrainEventFd(wake_.get());
  events_->WakeReaders();
  lines_->WakeReaders();
}

}  // namespace vgpud::daemon
