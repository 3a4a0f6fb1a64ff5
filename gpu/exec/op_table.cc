// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/op_table.h"

#include <fmt/core.h>

#include <iterator>

namespace vgpud {
namespace {

using enum PayloadRule;

constexpr OpSpec kOps[] = {
    {"NOP", 0, kNone, false, false, false},
    {"MEM_ALLOC", 1, kNone, false, true, false, true},
    {"MEM_FREE", 1, kNone, false, true, true},
    {"MEM_INFO", 0, kNone, false, false, false},
    {"MODULE_BEGIN", 2, kNone, false, false, false, true},
    {"MODULE_DATA", 2, kRequired, false, false, false},
    {"MODULE_LOAD", 1, kNone, false, true, false, true},
    {"MODULE_UNLOAD", 1, kNone, false, true, true},
    {"MODULE_FUNCTION", 2, kRequired, false, true, false, true},
    {"MODULE_GLOBAL", 1, kRequired, false, true, false},
    {"FUNCTION_SET", 3, kNone, false, true, false},
    {"STREAM_CREATE", 3, kNone, false, false, false, true},
    {"STREAM_DESTROY", 1, kNone, false, false, false},
    {"LAUNCH", 1, kRequired, true, false, false, true},
    {"COPY_IN", 1, kOptional, true, false, false, true},
    {"COPY_OUT", 1, kOptional, true, false, false, true},
    {"COPY_DEV", 3, kNone, true, false, false, true},
    {"BUF_IN", 4, kNone, true, false, false, true},
    {"BUF_OUT", 4, kNone, true, false, false, true},
    {"FILL", 4, kNone, true, false, false, true},
    {"EVENT_RECORD", 2, kNone, true, false, false, true},
    {"EVENT_WAIT", 2, kNone, true, false, false, true},
    {"STREAM_SYNC", 0, kNone, true, false, false, true},
    {"CONTEXT_SYNC", 0, kNone, false, false, false},
    {"CONTEXT_RESET", 0, kNone, false, true, false},
    {"DEVICE_INFO", 0, kRequired, false, true, false},
    {"GATE_WAIT", 2, kNone, true, false, false, true},
    {"LIMIT_SET", 2, kNone, false, true, false},
    {"PRINT_READ", 0, kRequired, false, true, false},
    {"TEXTURE_CREATE", 0, kRequired, false, true, false, true},
    {"TEXTURE_DESTROY", 1, kNone, false, true, true},
};
static_assert(std::size(kOps) == VGPU_OP_COUNT);

}  // namespace

const OpSpec* FindOp(uint32_t op) { return op < VGPU_OP_COUNT ? &kOps[op] : nullptr; }

std::optional<std::string> CheckForm(const vgpu_sqe& entry) {
  const OpSpec* spec = FindOp(entry.op);
  if (spec == nullptr) return fmt::format("submission {}: unknown op {}", entry.seqno, entry.op);
  const auto wrong = [&](std::string_view field, uint64_t value) {
    return fmt::format("submission {} ({}): {} is {:#x}", entry.seqno, spec->name, field, value);
  };
  if ((entry.flags & ~VGPU_SQE_WANT_COMPLETION) != 0) return wrong("flags has unknown bits,", entry.flags);
  for (unsigned i = spec->args; i < std::size(entry.args); ++i)
    if (entry.args[i] != 0) return wrong(fmt::format("args[{}] must be zero,", i), entry.args[i]);
  if (spec->payload == kNone && entry.payload_len != 0) return wrong("payload_len must be zero,", entry.payload_len);
  if (spec->payload == kRequired && entry.payload_len == 0) return wrong("payload_len", 0);
  return std::nullopt;
}

}  // namespace vgpud
