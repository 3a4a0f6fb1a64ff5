// SPDX-License-Identifier: Apache-2.0
#include "gpu/channels/channels_text.h"

#include <fmt/core.h>

#include <charconv>
#include <iterator>

namespace vgpud::rm {
namespace {

constexpr std::string_view kLists[] = {"groups", "channels", "compute"};

class Words {
 public:
  explicit Words(std::string_view text) : left_(text) {}
  std::string_view Next() {
    const size_t begin = std::min(left_.find_first_not_of(' '), left_.size());
    const size_t end = std::min(left_.find(' ', begin), left_.size());
    const std::string_view word = left_.substr(begin, end - begin);
    left_.remove_prefix(end);
    return word;
  }

 private:
  std::string_view left_;
};

bool Number(std::string_view word, uint32_t& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

}  // namespace

std::string ChannelsText(const ClientChannels& channels) {
  std::string text = fmt::format("{} {} {} {} {}", kChannelsWord, channels.fd, channels.client, channels.subdevice,
                                 channels.compute_group);
  const std::vector<uint32_t>* const lists[] = {&channels.groups, &channels.channels, &channels.of_compute_group};
  for (size_t n = 0; n < std::size(kLists); ++n) {
    text += fmt::format(" {}", kLists[n]);
    for (const uint32_t handle : *lists[n]) text += fmt::format(" {}", handle);
  }
  return text;
}

std::optional<ClientChannels> ReadChannels(std::string_view line) {
  Words words(line);
  ClientChannels channels;
  uint32_t fd = 0;
  if (words.Next() != kChannelsWord || !Number(words.Next(), fd) || fd > INT32_MAX ||
      !Number(words.Next(), channels.client) || !Number(words.Next(), channels.subdevice) ||
      !Number(words.Next(), channels.compute_group))
    return std::nullopt;
  channels.fd = static_cast<int>(fd);
  std::vector<uint32_t>* const lists[] = {&channels.groups, &channels.channels, &channels.of_compute_group};
  size_t list = 0, listed = 0;
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    uint32_t handle = 0;
    if (list < std::size(kLists) && word == kLists[list]) {
      ++list;
    } else if (list == 0 || !Number(word, handle) || ++listed > kMostListed) {
      return std::nullopt;
    } else {
      lists[list - 1]->push_back(handle);
    }
  }
  return list == std::size(kLists) ? std::optional(channels) : std::nullopt;
}

}  // namespace vgpud::rm
