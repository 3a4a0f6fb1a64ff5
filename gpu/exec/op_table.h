// SPDX-License-Identifier: Apache-2.0
// What the ABI says about the form of each submission entry (vgpu_abi.h, "Operations"), as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud {

enum class PayloadRule : uint8_t { kNone, kOptional, kRequired };

struct OpSpec {
  const char* name;
  uint8_t args;  // the first `args` of args[] mean something, the rest must be zero
  PayloadRule payload;
  bool in_stream;      // stream-ordered [S]
  bool exclusive;      // touches the context or what running work uses: no step may be running
  bool needs_drain;    // waits for all earlier work of the channel
  bool keeps = false;  // leaves something behind in our memory, be it until its turn comes
};

// nullptr for an unknown operation.
const OpSpec* FindOp(uint32_t op);
// What is wrong with the form of `entry`: a sentence that names the field, nullopt when it is fine. The payload
// position is PayloadWindow's business.
std::optional<std::string> CheckForm(const vgpu_sqe& entry);

}  // namespace vgpud
