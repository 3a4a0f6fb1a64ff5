// SPDX-License-Identifier: Apache-2.0
// printf of kernels against that of the C library, conversion by conversion, and its limits.
#include "gpu/soft/memory/print_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <vector>

namespace vgpud::soft {
namespace {

// Words of 64 bits, each argument in its own, as for arguments of 8 bytes; of those of 4 bytes the lower half.
class Words : public PrintSource {
 public:
  explicit Words(std::vector<uint64_t> words) : words_(std::move(words)) {}
  std::optional<uint64_t> Argument(uint64_t offset, uint32_t bytes) override {
    asked.push_back({offset, bytes});
    if (next_ == words_.size()) return std::nullopt;
    const uint64_t word = words_[next_++];
    return bytes == 4 ? word & 0xffffffff : word;
  }
  std::optional<std::string> Text(uint64_t, size_t most) override {
    most_asked = most;
    return std::string("a text").substr(0, most);
  }
  std::vector<std::pair<uint64_t, uint32_t>> asked;
  size_t most_asked = 0;

 private:
  std::vector<uint64_t> words_;
  size_t next_ = 0;
};

std::string Formatted(const std::string& format, std::vector<uint64_t> words = {}) {
  Words source(std::move(words));
  const auto printed = FormatPrint(format, source);
  return printed ? printed->text : "(unreadable)";
}

template <class... T>
std::string Printf(const char* format, T... values) {
  std::string text(20'000, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  text.resize(static_cast<size_t>(std::snprintf(text.data(), text.size(), format, values...)));
#pragma GCC diagnostic pop
  return text;
}

TEST(PrintFormatTable, IntegersAreThoseOfTheCLibrary) {
  const char* const flags[] = {"", "-", "+", " ", "#", "0", "-+", "+ ", "-0", "+0", "0#", " 0"};
  const char* const widths[] = {"", "1", "3", "9", "10", "25"};
  const char* const precisions[] = {"", ".", ".0", ".1", ".7", ".12"};
  for (const char* flag : flags)
    for (const char* width : widths)
      for (const char* precision : precisions)
        for (const char letter : std::string("diuoxX")) {
          const std::string front = std::string("%") + flag + width + precision;
          for (const int value : {0, 1, -1, 123456, -123456, INT32_MIN}) {
            const auto word = static_cast<uint32_t>(value);
            const std::string plain = front + letter;
            ASSERT_EQ(Formatted(plain, {word}), Printf(plain.c_str(), value)) << plain;
            const std::string half = front + "h" + letter;
            ASSERT_EQ(Formatted(half, {word}), Printf(half.c_str(), value)) << half;
            const std::string byte = front + "hh" + letter;
            ASSERT_EQ(Formatted(byte, {word}), Printf(byte.c_str(), value)) << byte;
            const int64_t large = int64_t{value} * 1'000'003;
            for (const char* length : {"l", "ll", "j", "z", "t", "q"}) {
              const std::string expected = Printf((front + "ll" + letter).c_str(), static_cast<long long>(large));
              ASSERT_EQ(Formatted(front + length + letter, {static_cast<uint64_t>(large)}), expected)
                  << front << length;
            }
          }
        }
}

TEST(PrintFormatTable, FloatsTextsAndTheRestAreThoseOfTheCLibrary) {
  for (const char* front : {"%", "%12", "%-12", "%+.3", "%012.4", "% .0", "%#.0"}) {
    for (const char letter : std::string("fFeEgGaA"))
      for (const double value : {0.0, -1.5, 1e10, 3.14159265358979, -1e-7}) {
        const std::string format = std::string(front) + letter;
        ASSERT_EQ(Formatted(format, {std::bit_cast<uint64_t>(value)}), Printf(format.c_str(), value)) << format;
        ASSERT_EQ(Formatted(std::string(front) + "l" + letter, {std::bit_cast<uint64_t>(value)}),
                  Printf(format.c_str(), value));
      }
  }
  for (const char* format : {"%c", "%5c", "%-5c|"}) EXPECT_EQ(Formatted(format, {'x'}), Printf(format, 'x'));
  for (const char* format : {"%s", "%8s", "%-8s|", "%.3s", "%8.2s", "%.0s", "%.s"}) {
    EXPECT_EQ(Formatted(format, {1}), Printf(format, "a text")) << format;
    const std::string null = Formatted(format, {0});
    EXPECT_EQ(null, Printf(format, "(null)"));
  }
  for (const char* format : {"%p", "%20p", "%-20p|"}) {
    EXPECT_EQ(Formatted(format, {0x7000}), Printf(format, reinterpret_cast<void*>(0x7000)));
    EXPECT_EQ(Formatted(format, {0}), Printf(format, nullptr));
  }
}

TEST(PrintFormatTable, ArgumentsAreWhereTheCompilerPutsThem) {
  Words source({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto printed = FormatPrint("%d%d%d%f%c%ld%hd%p", source);
  ASSERT_TRUE(printed);
  EXPECT_EQ(printed->arguments, 8);
  EXPECT_EQ(source.asked, (std::vector<std::pair<uint64_t, uint32_t>>{
                              {0, 4}, {4, 4}, {8, 4}, {16, 8}, {24, 4}, {32, 8}, {40, 4}, {48, 8}}));
  Words stars({3, 1, 7});
  EXPECT_EQ(FormatPrint("%*.*d", stars)->arguments, 3);
  EXPECT_EQ(stars.asked.size(), 3u);
}

TEST(PrintFormatTable, StarsAreSignedAndBounded) {
  const auto negative = [](int value) { return uint64_t{static_cast<uint32_t>(value)}; };
  EXPECT_EQ(Formatted("[%*d]", {5, 42}), "[   42]");
  EXPECT_EQ(Formatted("[%*d]", {negative(-5), 42}), "[42   ]");
  EXPECT_EQ(Formatted("[%*d]", {0, 42}), "[42]");
  EXPECT_EQ(Formatted("[%.*d]", {0, 0}), "[]");
  EXPECT_EQ(Formatted("[%.*d]", {negative(-1), 0}), "[0]") << "a negative precision is none";
  EXPECT_EQ(Formatted("[%.*s]", {negative(-3), 1}), "[a text]");
  for (const int wide : {4096, 4097, INT32_MAX}) EXPECT_EQ(Formatted("%*d", {negative(wide), 1}).size(), 4096u);
  for (const int wide : {-4096, -4097, INT32_MIN}) EXPECT_EQ(Formatted("%*d", {negative(wide), 1}).size(), 4096u);
  EXPECT_EQ(Formatted("%*d", {4095, 1}).size(), 4095u);
  EXPECT_EQ(Formatted("%.*d", {4097, 1}).size(), 4096u);
  EXPECT_EQ(Formatted("%*d", {}), "(unreadable)");
  EXPECT_EQ(Formatted("%.*d", {}), "(unreadable)");
  EXPECT_EQ(Formatted("%.*d", {1}), "(unreadable)");
  for (const char* format : {"%c", "%f", "%p", "%s", "%d", "%ld"}) EXPECT_EQ(Formatted(format), "(unreadable)");
}

TEST(PrintFormatTable, NumbersInTheFormatAreBounded) {
  EXPECT_EQ(Formatted("%4095d", {1}).size(), 4095u);
  EXPECT_EQ(Formatted("%4096d", {1}).size(), 4096u);
  EXPECT_EQ(Formatted("%4097d", {1}).size(), 4096u);
  EXPECT_EQ(Formatted("%99999999999999999999d", {1}).size(), 4096u);
  EXPECT_EQ(Formatted("%.4097d", {1}).size(), 4096u);
  for (const char* width : {"126", "127", "128", "129", "1000"}) {
    const std::string format = std::string("%").append(width).append("d");
    EXPECT_EQ(Formatted(format, {7}), Printf(format.c_str(), 7));
  }
}

TEST(PrintFormatTable, TextsAreAskedForNoLongerThanTheyAreNeeded) {
  Words source({1, 1, 1});
  ASSERT_TRUE(FormatPrint("%s", source));
  EXPECT_EQ(source.most_asked, 16u << 10);
  ASSERT_TRUE(FormatPrint("%.3s", source));
  EXPECT_EQ(source.most_asked, 3u);
  ASSERT_TRUE(FormatPrint("%9s", source));
  EXPECT_EQ(source.most_asked, 16u << 10);
}

TEST(PrintFormatTable, WhatIsNoConversionStandsAsItIs) {
  for (const char* text :
       {"", "x", "%", "a%", "%5", "%-", "%.", "%.5", "%*", "%l", "%hh", "%y", "%5.2y", "%n", "%-+ #0k"})
    EXPECT_EQ(Formatted(text, {1, 2}), text);
  EXPECT_EQ(Formatted("%%"), "%");
  EXPECT_EQ(Formatted("a%%b%%"), "a%b%");
  EXPECT_EQ(Formatted("%%d"), "%d");
  EXPECT_EQ(Formatted("%%%d", {5}), "%5");
  EXPECT_EQ(Formatted("%yy %d", {5}), "%yy 5");
  EXPECT_EQ(Formatted("%5%d", {5}), "%5%d") << "only two in a row are one";
}

TEST(PrintFormatTable, MoreThan64KiBOfOneCallAreNotPrinted) {
  constexpr size_t kMost = 64 << 10;
  EXPECT_EQ(Formatted(std::string(kMost, 'x')).size(), kMost);
  EXPECT_EQ(Formatted(std::string(kMost + 1, 'x')).size(), kMost);
  const std::string full(kMost - 1, 'x');
  EXPECT_TRUE(Formatted(full + "%d", {12}) == full + "1");
  EXPECT_TRUE(Formatted(full + "%c%d", {'y'}) == full + "y") << "what is behind the end is not read";
  EXPECT_TRUE(Formatted(full + "%d") == "(unreadable)");
}

// "0.5", sixteen times: 4096 digits of each are worked out, and 65536 bytes and digits are the most.
TEST(PrintFormat, DigitsThatAreWorkedOutAndCutOffCountAsPrinted) {
  std::string format, expected;
  for (int n = 0; n < 100; ++n) format += "%.4096g";
  for (int n = 0; n < 16; ++n) expected += "0.5";
  EXPECT_EQ(Formatted(format, std::vector<uint64_t>(100, std::bit_cast<uint64_t>(0.5))), expected);
}

}  // namespace
}  // namespace vgpud::soft
