#include "vfio/version_text.h"

#include <fmt/core.h>

#include <string>

#include "vfio/dma_table.h"
#include "vfio/wire.h"

namespace vgpud {
namespace {

constexpr uint64_t kMaxExactNumber = 1ull << 53;

size_t SkipSpace(std::string_view s, size_t at) {
  while (at < s.size() && (s[at] == ' ' || s[at] == '\t' || s[at] == '\n' || s[at] == '\r')) ++at;
  return at;
}

// The position behind the string that opens at `at`.
size_t SkipString(std::string_view s, size_t at) {
  for (++at; at < s.size(); ++at) {
    if (s[at] == '\\')
      ++at;
    else if (s[at] == '"')
      return at + 1;
  }
  return s.size();
}

std::optional<uint64_t> Number(std::string_view s, size_t at) {
  const size_t first = at;
  uint64_t value = 0;
  for (; at < s.size() && s[at] >= '0' && s[at] <= '9'; ++at) {
    value = value * 10 + static_cast<uint64_t>(s[at] - '0');
    if (value > kMaxExactNumber) return std::nullopt;
  }
  const bool ends = at == s.size() || (s[at] != '.' && s[at] != 'e' && s[at] != 'E');
  if (at == first || !ends) return std::nullopt;
  return value;
}

}  // namespace

std::optional<uint64_t> FindJsonNumber(std::string_view json, std::string_view key) {
  for (size_t at = json.find('"'); at < json.size(); at = json.find('"', at)) {
    const size_t end = SkipString(json, at);
    const bool found = end - at == key.size() + 2 && json.substr(at + 1, key.size()) == key;
    at = SkipSpace(json, end);
    if (found && at < json.size() && json[at] == ':') return Number(json, SkipSpace(json, at + 1));
  }
  return std::nullopt;
}

std::string_view VersionText() {
  static const std::string text =
      fmt::format(R"({{"capabilities":{{"max_msg_fds":{},"max_data_xfer_size":{},"max_dma_maps":{},"pgsizes":4096}}}})",
                  wire::kMaxFds, wire::kMaxTransfer, kMaxDmaRegions);
  return text;
}

}  // namespace vgpud
