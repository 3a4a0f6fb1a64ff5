// SPDX-License-Identifier: Apache-2.0
// Counts the PTX instructions that libraries and programs contain, and says which of their kernels the soft GPU refuses
// and why (docs/ptx-histogram.md).
// usage: ptx-forms X.Y FILE...     of each fatbin in a FILE, whatever that is, what a GPU of compute capability X.Y
// gets
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/compute_capability.h"
#include "gpu/ptx/fatbin.h"
#include "gpu/ptx/parser.h"
#include "gpu/soft/decode/decoder.h"

namespace vgpud::soft {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;  // docs/fatbin.md
constexpr size_t kHeaderBytes = 16;
constexpr size_t kReasonBytes = 100;

struct Form {
  uint64_t count = 0;
  std::set<size_t> files;
  uint64_t kernels = 0;
};
struct Sums {
  uint64_t images = 0, without_ptx = 0, functions = 0, refused = 0;
  std::map<std::string, Form> forms;
  std::map<std::string, uint64_t> reasons;  // functions by what was refused
};

std::string NameOf(const ptx::Instruction& i) {
  std::string name(i.opcode);
  for (const std::string_view modifier : i.modifiers) name += fmt::format(".{}", modifier);
  return name;
}

// The message without its line number and operands, so that equal causes are equal.
std::string ReasonOf(const std::string& text) {
  const size_t colon = text.starts_with("PTX line ") ? text.find(": ") : std::string::npos;
  std::string reason = colon == std::string::npos ? text : text.substr(colon + 2);
  if (const size_t operand = reason.find_first_of("%["); operand != std::string::npos) reason.resize(operand);
  return reason.substr(0, kReasonBytes);
}

void CountModule(const std::string& text, size_t file, Sums& sums) {
  auto parsed = ptx::Parse(text);
  if (!parsed) {
    ++sums.reasons["not parsed: " + ReasonOf(parsed.error().text)];
    return;
  }
  for (const auto& function : (*parsed)->functions) {
    if (function->is_extern) continue;
    ++sums.functions;
    std::set<std::string> seen;
    for (const ptx::Instruction& i : function->code) {
      const std::string name = NameOf(i);
      ++sums.forms[name].count;
      if (seen.insert(name).second) ++sums.forms[name].kernels;
      sums.forms[name].files.insert(file);
    }
  }
  const auto decoded = Decode(**parsed, OpTable::Of(BestIsa()));
  if (!decoded) {
    ++sums.refused;
    ++sums.reasons[ReasonOf(decoded.error().text)];
    return;
  }
  for (const auto& function : (*decoded)->functions) {
    if (!function->error) continue;
    ++sums.refused;
    ++sums.reasons[ReasonOf(function->error->text)];
  }
}

void CountFile(const std::string& path, size_t file, uint32_t sm, Sums& sums) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  for (size_t at = 0; at + kHeaderBytes <= bytes.size(); at += 8) {
    uint32_t magic;
    uint64_t body;
    std::memcpy(&magic, &bytes[at], sizeof magic);
    std::memcpy(&body, &bytes[at + 8], sizeof body);
    if (magic != kFatbinMagic || body > bytes.size() - at - kHeaderBytes) continue;
    ++sums.images;
    const auto texts = ptx::SelectPtx(std::as_bytes(std::span(&bytes[at], kHeaderBytes + body)), sm);
    if (!texts) ++sums.without_ptx;
    for (const std::string& text : texts ? *texts : std::vector<std::string>{}) CountModule(text, file, sums);
    at += (kHeaderBytes + body + 7) / 8 * 8 - 8;
  }
}

template <class Map, class Count>
void PrintByCount(const char* kind, const Map& map, Count count) {
  std::vector<typename Map::const_iterator> order;
  for (auto it = map.begin(); it != map.end(); ++it) order.push_back(it);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return count(a->second) > count(b->second); });
  for (const auto& it : order) fmt::print("{}\t{}\t{}\n", kind, it->first, count(it->second));
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: ptx-forms X.Y FILE...\n");
    return 2;
  }
  const auto capability = FindComputeCapability(argv[1]);
  if (!capability) {
    fmt::print(stderr, "ptx-forms: {}\n", capability.error().context);
    return 2;
  }
  Sums all;
  for (int n = 2; n < argc; ++n) {
    Sums sums;
    CountFile(argv[n], static_cast<size_t>(n), (*capability)->number, sums);
    fmt::print("file\t{}\timages {}, without such PTX {}, functions {}, refused {}\n", argv[n], sums.images,
               sums.without_ptx, sums.functions, sums.refused);
    for (auto& [name, form] : sums.forms) {
      Form& sum = all.forms[name];
      sum.count += form.count;
      sum.kernels += form.kernels;
      sum.files.merge(form.files);
    }
    for (const auto& [reason, count] : sums.reasons) all.reasons[reason] += count;
  }
  PrintByCount("refused", all.reasons, [](uint64_t count) { return count; });
  PrintByCount("form", all.forms, [](const Form& form) { return form.count; });
  return 0;
}

}  // namespace
}  // namespace vgpud::soft

int main(int argc, char** argv) { return vgpud::soft::Main(argc, argv); }
