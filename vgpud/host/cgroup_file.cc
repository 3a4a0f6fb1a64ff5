// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/cgroup_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include "base/fd.h"

namespace vgpud::daemon {

Result<void> WriteCgroupFile(const std::string& path, const std::string& text) {
  const UniqueFd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!file) return FailErrno(fmt::format("cannot open {}", path));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno(fmt::format("cannot write \"{}\" to {}", text, path));
  return {};
}

std::string ReadCgroupFile(const std::string& path) {
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  std::string text(64 * 1024, '\0');
  const ssize_t n = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

namespace {

std::optional<uint64_t> NumberIn(std::string_view text, const std::string& key) {
  size_t at = 0;
  if (!key.empty()) {
    at = text.starts_with(key + " ") ? 0 : text.find("\n" + key + " ");
    if (at == std::string_view::npos) return std::nullopt;
    at = text.find(' ', at) + 1;
  }
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> ReadCgroupNumber(const std::string& path, const std::string& key) {
  return NumberIn(ReadCgroupFile(path), key);
}

std::optional<uint64_t> ReadCgroupNumber(int file, const std::string& key) {
  std::array<char, 4096> text{};
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  return NumberIn({text.data(), n > 0 ? static_cast<size_t>(n) : 0}, key);
}

}  // namespace vgpud::daemon
