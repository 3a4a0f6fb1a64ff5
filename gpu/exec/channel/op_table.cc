// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/channel/op_table.h"

#include <fmt/core.h>

#include <cstring>
#include <iterator>

namespace vgpud::exec {

void UnlockedCopy::Run() const { std::memcpy(to.data(), from.data(), from.size()); }

std::optional<std::string> CheckForm(const vgpu_sqe& entry) {
  const OpRow* row = FindOp(entry.op);
  if (row == nullptr) return fmt::format("submission {}: unknown op {}", entry.seqno, entry.op);
  const auto wrong = [&](std::string_view field, uint64_t value) {
    return fmt::format("submission {} ({}): {} is {:#x}", entry.seqno, row->name, field, value);
  };
  if ((entry.flags & ~VGPU_SQE_WANT_COMPLETION) != 0) return wrong("flags has unknown bits,", entry.flags);
  for (unsigned i = row->rules.args; i < std::size(entry.args); ++i)
    if (entry.args[i] != 0) return wrong(fmt::format("args[{}] must be zero,", i), entry.args[i]);
  if (row->rules.payload == PayloadRule::kNone && entry.payload_len != 0)
    return wrong("payload_len must be zero,", entry.payload_len);
  if (row->rules.payload == PayloadRule::kRequired && entry.payload_len == 0) return wrong("payload_len", 0);
  return std::nullopt;
}

}  // namespace vgpud::exec
