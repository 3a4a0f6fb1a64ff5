// SPDX-License-Identifier: Apache-2.0
// What kernels print (printf, assert), until the guest program fetches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpud {

class DeviceOutput {
 public:
  virtual ~DeviceOutput() = default;
  // Bytes of text that are kept; the oldest go first. The GPU may keep fewer.
  virtual void SetPrintCapacity(uint64_t bytes) = 0;
  // Bytes that wait to be fetched.
  virtual size_t printed_bytes() const = 0;
  // Moves the oldest texts for one output into `out`, as many as fit, and says which output. Returns the bytes; 0:
  // there are none, and *to_stderr is as it was.
  virtual size_t TakePrinted(std::span<std::byte> out, bool* to_stderr) = 0;
};

}  // namespace vgpud
