// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/vf_ledger.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "vgpud/model/vf_statistics.h"

namespace vgpud::daemon {
namespace {

constexpr uint32_t kMagic = 0x5247444c;  // "LDGR"
constexpr uint32_t kLedgerVersion = 2;

}  // namespace

static_assert(std::is_trivially_copyable_v<VfLedger::Entry>);

Result<std::shared_ptr<VfLedger>> VfLedger::Make(const std::string& vf) {
  UniqueFd file = TRY(MakeSealedMemfd("vgpu-ledger-" + vf, Bytes()));
  Mapping memory = TRY(Mapping::Shared(file.get(), 0, Bytes()));
  std::shared_ptr<VfLedger> ledger{new VfLedger(std::move(file), std::move(memory))};
  ledger->page().magic = kMagic;
  ledger->page().version = kLedgerVersion;
  ledger->page().entry_bytes = sizeof(Entry);
  return ledger;
}

Result<std::shared_ptr<VfLedger>> VfLedger::Open(UniqueFd file) {
  constexpr const char* kOther = "what was counted of it has another format";
  if (!CheckSealedMemfd(file.get(), Bytes(), "the ledger")) return Fail(std::errc::protocol_error, kOther);
  Mapping memory = TRY(Mapping::Shared(file.get(), 0, Bytes()));
  std::shared_ptr<VfLedger> ledger{new VfLedger(std::move(file), std::move(memory))};
  const Page& page = ledger->page();
  if (page.magic != kMagic || page.version != kLedgerVersion || page.entry_bytes != sizeof(Entry))
    return Fail(std::errc::protocol_error, kOther);
  return ledger;
}

void VfLedger::Write(Entry entry) {
  entry.past = past_;
  const uint64_t next = page().written.load(std::memory_order_relaxed) + 1;
  std::memcpy(static_cast<void*>(&page().entries[next % 2]), &entry, sizeof entry);
  page().written.store(next, std::memory_order_release);
}

std::optional<VfLedger::Entry> VfLedger::Read() const {
  const uint64_t written = page().written.load(std::memory_order_acquire);
  if (written == 0) return std::nullopt;
  return page().entries[written % 2];
}

VfStats TotalOf(const VfLedger::Entry& entry, uint64_t granted_ns, uint64_t taken_back_ns) {
  VfStats total = entry.past;
  AddFigures(total, entry.now);
  const uint64_t since = std::max(granted_ns, entry.at_ns);
  if (taken_back_ns <= since) return total;
  const uint64_t had = taken_back_ns - since;
  total.account.received_ns += had;
  total.account.runnable_ns += had;
  ++total.account.slices;
  return total;
}

}  // namespace vgpud::daemon
