// SPDX-License-Identifier: Apache-2.0
#include "vfio/wire/version_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vfio/memory/dma_table.h"
#include "vfio/wire/wire.h"

namespace vgpud::vfio {
namespace {

using Json = nlohmann::json;

enum class Kind { kObject, kNumber, kBool, kOther };
constexpr const char* kKindNames[] = {"an object", "a whole number", "true or false", "something else"};

// Every key that the protocol names, by its path from the top.
struct KnownKey {
  std::array<std::string_view, 3> path;
  Kind kind;
  uint64_t least = 0;
  uint64_t most = 0;
  uint64_t ClientCapabilities::*keep = nullptr;
};
constexpr uint64_t kMost32 = 0xffff'ffff;
constexpr uint64_t kMostExact = uint64_t{1} << 53;  // of a JSON number
constexpr KnownKey kKnown[] = {
    {{"capabilities"}, Kind::kObject},
    {{"capabilities", "max_msg_fds"}, Kind::kNumber, 0, kMost32, &ClientCapabilities::max_msg_fds},
    {{"capabilities", "max_data_xfer_size"}, Kind::kNumber, 1, kMost32, &ClientCapabilities::max_data_xfer_size},
    {{"capabilities", "max_dma_maps"}, Kind::kNumber, 1, kMost32, &ClientCapabilities::max_dma_maps},
    {{"capabilities", "pgsizes"}, Kind::kNumber, 4096, kMostExact, &ClientCapabilities::page_sizes},
    {{"capabilities", "write_multiple"}, Kind::kBool},
    {{"capabilities", "twin_socket"}, Kind::kObject},
    {{"capabilities", "twin_socket", "supported"}, Kind::kBool},
    {{"capabilities", "twin_socket", "fd_index"}, Kind::kNumber, 0, wire::kMaxFds - 1},
    {{"capabilities", "migration"}, Kind::kObject},
    {{"capabilities", "migration", "pgsize"}, Kind::kNumber, 1, kMostExact},
    {{"capabilities", "migration", "max_bitmap_size"}, Kind::kNumber, 1, kMostExact},
};

// Hears what the parser finds, in order, and stops it at the first thing that is wrong. Nothing is built, so nothing
// grows with the text but `path_`, whose length is limited.
class Listener : public nlohmann::json_sax<Json> {
 public:
  ClientCapabilities found;
  std::string wrong;

  bool null() override { return Value(Kind::kOther); }
  bool boolean(bool) override { return Value(Kind::kBool); }
  bool number_unsigned(uint64_t value) override { return Value(Kind::kNumber, value); }
  bool number_integer(int64_t) override { return Value(Kind::kOther); }  // only negative ones
  bool number_float(double, const std::string&) override { return Value(Kind::kOther); }
  bool string(std::string&) override { return Value(Kind::kOther); }
  bool binary(Json::binary_t&) override { return Value(Kind::kOther); }
  bool start_object(size_t) override { return Value(Kind::kObject) && Enter(); }
  bool end_object() override { return Leave(); }
  bool start_array(size_t) override { return Value(Kind::kOther) && Enter(); }
  bool end_array() override { return Leave(); }
  bool key(std::string& name) override {
    path_.back() = name;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return Wrong(fmt::format("is no JSON at byte {}", at));
  }

 private:
  bool Wrong(std::string what) {
    wrong = std::move(what);
    return false;
  }
  bool Enter() {
    if (path_.size() == kMaxVersionDepth) return Wrong(fmt::format("is deeper than {} levels", kMaxVersionDepth));
    path_.emplace_back();  // a key follows, or it is an array: no known key is empty
    return true;
  }
  bool Leave() {
    path_.pop_back();
    return true;
  }
  bool IsHere(const KnownKey& known) const {
    const auto deep = std::find(known.path.begin(), known.path.end(), std::string_view{}) - known.path.begin();
    return std::equal(path_.begin(), path_.end(), known.path.begin(), known.path.begin() + deep);
  }
  bool Value(Kind kind, uint64_t number = 0) {
    if (path_.empty()) return kind == Kind::kObject || Wrong("is no JSON object");
    const auto known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const KnownKey& k) { return IsHere(k); });
    if (known == std::end(kKnown)) return true;
    const auto name = path_.back();
    if (seen_ >> (known - kKnown) & 1) return Wrong(fmt::format("has {} twice", name));
    seen_ |= 1u << (known - kKnown);
    if (kind != known->kind)
      return Wrong(fmt::format("has a {} that is not {}", name, kKindNames[static_cast<size_t>(known->kind)]));
    if (kind != Kind::kNumber) return true;
    if (number < known->least || number > known->most)
      return Wrong(fmt::format("has {} {}, {} to {} are possible", name, number, known->least, known->most));
    if (known->keep != nullptr) found.*known->keep = number;
    return true;
  }

  std::vector<std::string> path_;  // the keys down to here; "" in an array
  uint32_t seen_ = 0;              // rows of kKnown
};
static_assert(std::size(kKnown) <= 32);

}  // namespace

Result<ClientCapabilities> ParseVersionText(std::string_view text) {
  if (text.empty()) return ClientCapabilities{};
  if (text.size() > kMaxVersionText)
    return Fail(std::errc::invalid_argument,
                fmt::format("VERSION: a text of {} bytes, {} are possible", text.size(), kMaxVersionText));
  Listener listener;
  if (!Json::sax_parse(text, &listener))
    return Fail(std::errc::invalid_argument, "VERSION: the text " + listener.wrong);
  return listener.found;
}

std::string_view VersionText() {
  static const std::string text =
      fmt::format(R"({{"capabilities":{{"max_msg_fds":{},"max_data_xfer_size":{},"max_dma_maps":{},"pgsizes":4096}}}})",
                  wire::kMaxFds, wire::kMaxTransfer, kMaxDmaRegions);
  return text;
}

}  // namespace vgpud::vfio
