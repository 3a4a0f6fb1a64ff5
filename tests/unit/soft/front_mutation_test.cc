// Real PTX and fatbins, damaged at random (always the same way): the front end must answer with a sound module or a
// message, whatever comes. Meant to run under the sanitizers too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "gpu/soft/fatbin.h"
#include "gpu/soft/ptx_parser.h"
#include "tests/unit/soft/fatbin_builder.h"
#include "tests/unit/soft/ptx_check.h"

namespace vgpud {
namespace {

constexpr int kTextMutations = 20'000;
constexpr int kImageMutations = 5'000;

// Pieces that lead the parser down its rarer paths.
constexpr std::string_view kDictionary[] = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ":",
    ",",
    "|",
    "@!",
    "@%p1 ",
    "%r1",
    "%rd1",
    "_",
    "WARP_SZ",
    "%tid.x",
    "<1000000>",
    "<4>",
    " .reg .pred q;",
    " .param .align 8 .b8 z[16];",
    " .v4 ",
    "[0x7fffffffffffffff]",
    "0f3F800000",
    "0d",
    "0x",
    "-",
    "*2/0",
    ">>64",
    "? 1 : 2",
    "(.u64)",
    "= {1, {2}}",
    "generic(",
    "0xFF(a)",
    ".align 3",
    ".align 4096 ",
    ".section .x {",
    ".loc 1 2 3\n",
    "\"",
    "/*",
    "//",
    "\n",
    "\0",
    "\xff",
    "call (r), f, (a), p;",
    "t: .branchtargets A, B;",
    "brx.idx %r1, t;",
    "L: bra L;",
    ".callprototype (.param .b32 _) _ ();",
    ".extern ",
    ".func ",
    ".entry ",
    ".global .u32 ",
};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}
  std::string Mutate(std::string text) {
    for (size_t edits = 1 + Below(4); edits > 0; --edits) Edit(text);
    return text;
  }
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

 private:
  void Edit(std::string& text) {
    const size_t at = Below(text.size());
    const size_t length = std::min(Below(1 + Below(64)), text.size() - at);
    switch (Below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random_());
        break;
      case 1:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(Below(text.size()), length));
        break;
      case 4:
        text.insert(at, kDictionary[Below(std::size(kDictionary))]);
        break;
      default:
        text.resize(Below(8) == 0 ? at : text.size());
        break;
    }
  }
  std::mt19937 random_;
};

std::vector<std::string> RealPtx() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TEST_PTX_DIR))
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

GpuResult<std::string> Select(const std::string& image) {
  return SelectPtx(std::as_bytes(std::span{image.data(), image.size()}), 75);
}

TEST(FrontEnd, RealPtxParses) {
  const auto texts = RealPtx();
  ASSERT_GE(texts.size(), 7u);
  for (const std::string& text : texts) {
    const auto module = ptx::Parse(text);
    ASSERT_TRUE(module) << module.error().text;
    EXPECT_EQ((*module)->version, 90u);
    EXPECT_EQ((*module)->target, 75u);
    EXPECT_FALSE((*module)->functions.empty());
    for (const auto& function : (*module)->functions) EXPECT_FALSE(function->code.empty()) << function->name;
    EXPECT_EQ(ptx::BrokenInvariant(**module), "");
  }
}

TEST(FrontEnd, DamagedPtxGivesASoundModuleOrAMessage) {
  const auto texts = RealPtx();
  Mutator mutator(1);
  int parsed = 0;
  for (int i = 0; i < kTextMutations; ++i) {
    const std::string text = mutator.Mutate(texts[mutator.Below(texts.size())]);
    const auto module = ptx::Parse(text);
    if (module) {
      ++parsed;
      ASSERT_EQ(ptx::BrokenInvariant(**module), "") << "mutation " << i << "\n" << text;
    } else {
      ASSERT_TRUE(module.error().text.starts_with("PTX line ")) << "mutation " << i << ": " << module.error().text;
    }
  }
  // Both sides must have been tried.
  EXPECT_GT(parsed, kTextMutations / 20);
  EXPECT_LT(parsed, kTextMutations * 19 / 20);
}

TEST(FrontEnd, DamagedFatbinsGiveTextOrAMessage) {
  const auto texts = RealPtx();
  Mutator mutator(2);
  for (const uint64_t flags : {uint64_t{0}, kFatbinLz4, kFatbinZstd}) {
    FatbinBuilder builder;
    builder.Add(FatbinBuilder::kElf, 75, "code").Add(FatbinBuilder::kPtx, 60, texts[0], flags);
    const std::string image = builder.Add(FatbinBuilder::kPtx, 75, texts[1], flags).Build();
    ASSERT_EQ(Select(image).value(), texts[1]);
    for (int i = 0; i < kImageMutations; ++i) {
      const auto text = Select(mutator.Mutate(image));
      ASSERT_TRUE(text || !text.error().text.empty()) << "mutation " << i;
    }
  }
}

}  // namespace
}  // namespace vgpud
