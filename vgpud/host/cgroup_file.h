// SPDX-License-Identifier: Apache-2.0
// The files of a control group: short texts, written and read whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace vgpud::daemon {

[[nodiscard]] Result<void> WriteCgroupFile(const std::string& path, const std::string& text);
// Empty when it cannot be read. At most 64 KiB.
std::string ReadCgroupFile(const std::string& path);
// The number in a file that has just one, or behind `key` in one with a "KEY NUMBER" on each line.
std::optional<uint64_t> ReadCgroupNumber(const std::string& path, const std::string& key = {});
// The same of an open file, for who looks often: opening it costs more than reading.
std::optional<uint64_t> ReadCgroupNumber(int file, const std::string& key = {});

}  // namespace vgpud::daemon
