// SPDX-License-Identifier: Apache-2.0
// Amounts with units, as people type and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud {

// "1GiB", "256MiB", "64KiB", "4096B"; also "1G", "1Gi" and "1gib", which are "1GiB". A bare number is refused: nobody
// knows its unit. So is "1GB", which is 1000 MB for some and 1024 MiB for others.
[[nodiscard]] Result<uint64_t> ParseBytes(std::string_view text);
// "2ms", "500us", "1s", "1.5ms"; microseconds.
[[nodiscard]] Result<uint64_t> ParseMicroseconds(std::string_view text);
// The largest unit that shows it exactly, or three digits of it: "1GiB", "1.5GiB".
std::string FormatBytes(uint64_t bytes);
// "2ms", "1.5ms", "750us".
std::string FormatMicroseconds(uint64_t us);
// Rounded for tables: "12.3ms", "4.56s".
std::string FormatNanoseconds(uint64_t ns);

}  // namespace vgpud
