// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/memory/print_format.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace vgpud::soft {
namespace {

enum class Kind { kSigned, kUnsigned, kCharacter, kFloat, kString, kPointer };

struct Conversion {
  std::string flags;
  bool width_given = false;
  bool precision_given = false;
  bool width_star = false;
  bool precision_star = false;
  int width = 0;
  int precision = 0;
  int narrow = 0;  // h: 1, hh: 2
  bool wide = false;
  char letter = 0;
  Kind kind = Kind::kSigned;
};

std::optional<Kind> KindOf(char letter) {
  switch (letter) {
    case 'd':
    case 'i':
      return Kind::kSigned;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      return Kind::kUnsigned;
    case 'c':
      return Kind::kCharacter;
    case 's':
      return Kind::kString;
    case 'p':
      return Kind::kPointer;
    default:
      return std::string_view("fFeEgGaA").find(letter) != std::string_view::npos ? std::optional(Kind::kFloat)
                                                                                 : std::nullopt;
  }
}

int ReadNumber(std::string_view format, size_t& at) {
  int number = 0;
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
    number = std::min(number * 10 + (format[at] - '0'), kMostWidth);
  return number;
}

// What stands behind a '%'; `at` is moved behind it. nullopt: no conversion that there is.
std::optional<Conversion> ReadConversion(std::string_view format, size_t& at) {
  Conversion c;
  for (; at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos; ++at)
    if (c.flags.find(format[at]) == std::string::npos) c.flags += format[at];
  if (at < format.size() && format[at] == '*') {
    c.width_star = c.width_given = true;
    ++at;
  } else {
    const size_t begin = at;
    c.width = ReadNumber(format, at);
    c.width_given = at != begin;
  }
  if (at < format.size() && format[at] == '.') {
    ++at;
    c.precision_given = true;
    if (at < format.size() && format[at] == '*') {
      c.precision_star = true;
      ++at;
    } else {
      c.precision = ReadNumber(format, at);
    }
  }
  for (; at < format.size(); ++at) {
    const char m = format[at];
    if (m == 'h') {
      ++c.narrow;
    } else if (m == 'l' || m == 'j' || m == 'z' || m == 't' || m == 'L' || m == 'q') {
      c.wide = true;
    } else {
      break;
    }
  }
  if (at == format.size()) return std::nullopt;
  c.letter = format[at++];
  const auto kind = KindOf(c.letter);
  if (!kind) return std::nullopt;
  c.kind = *kind;
  return c;
}

// The packed arguments, each at a multiple of its size.
class Arguments {
 public:
  explicit Arguments(PrintSource& source) : source_(source) {}
  std::optional<uint64_t> Next(uint32_t bytes) {
    at_ = (at_ + bytes - 1) / bytes * bytes;
    const auto value = source_.Argument(at_, bytes);
    at_ += bytes;
    ++count_;
    return value;
  }
  int32_t count() const { return count_; }

 private:
  PrintSource& source_;
  uint64_t at_ = 0;
  int32_t count_ = 0;
};

// The specification for the C library, made anew from what was understood.
std::string Specification(const Conversion& c, std::string_view length, char letter) {
  std::string s(1, '%');
  s += c.flags;
  if (c.width_given) s += std::to_string(c.width);
  if (c.precision_given) {
    s += '.';
    s += std::to_string(c.precision);
  }
  s += length;
  s += letter;
  return s;
}

// The widest number: all digits before the point of the largest double, or as many as fit a field, and a fraction.
constexpr size_t kMostNumber = 512 + kMostWidth;

template <class T>
void Print(std::string& out, const std::string& specification, T value) {
  char small[kMostNumber];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(small, sizeof small, specification.c_str(), value);
  if (length < 0) return;
  if (static_cast<size_t>(length) < sizeof small) {
    out.append(small, static_cast<size_t>(length));
    return;
  }
  std::string large(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(large.data(), large.size(), specification.c_str(), value);
#pragma GCC diagnostic pop
  out.append(large, 0, static_cast<size_t>(length));
}

// What a conversion costs beside its text: digits that are worked out and cut off again, as %.4096g does.
size_t HiddenCost(const Conversion& c) {
  return c.kind == Kind::kFloat && c.precision_given ? static_cast<size_t>(c.precision) : 0;
}

bool PrintOne(std::string& out, Conversion& c, Arguments& arguments, PrintSource& source) {
  const auto star = [&](bool is, bool& given, int& value) {
    if (!is) return true;
    const auto read = arguments.Next(4);
    if (!read) return false;
    const auto number = static_cast<int32_t>(*read);
    given = true;
    value = std::clamp(number, -kMostWidth, kMostWidth);
    return true;
  };
  if (!star(c.width_star, c.width_given, c.width)) return false;
  if (c.width < 0) {
    c.flags += '-';
    c.width = -c.width;
  }
  if (!star(c.precision_star, c.precision_given, c.precision)) return false;
  if (c.precision < 0) c.precision_given = false;
  switch (c.kind) {
    case Kind::kSigned:
    case Kind::kUnsigned: {
      const auto read = arguments.Next(c.wide ? 8 : 4);
      if (!read) return false;
      const char* length = c.wide ? "ll" : c.narrow == 0 ? "" : c.narrow == 1 ? "h" : "hh";
      const std::string specification = Specification(c, length, c.letter);
      if (c.wide) {
        Print(out, specification, static_cast<unsigned long long>(*read));
      } else {
        Print(out, specification, static_cast<unsigned>(*read));
      }
      return true;
    }
    case Kind::kCharacter: {
      const auto read = arguments.Next(4);
      if (!read) return false;
      Print(out, Specification(c, "", 'c'), static_cast<int>(*read));
      return true;
    }
    case Kind::kFloat: {
      const auto read = arguments.Next(8);
      if (!read) return false;
      Print(out, Specification(c, "", c.letter), std::bit_cast<double>(*read));
      return true;
    }
    case Kind::kPointer: {
      const auto read = arguments.Next(8);
      if (!read) return false;
      // A null pointer is "(nil)" to the C library as well.
      Print(out, Specification(c, "", 'p'), reinterpret_cast<void*>(*read));
      return true;
    }
    case Kind::kString: {
      const auto address = arguments.Next(8);
      if (!address) return false;
      const size_t most = c.precision_given ? static_cast<size_t>(c.precision) : kMostText;
      const auto text = *address == 0 ? std::optional<std::string>("(null)") : source.Text(*address, most);
      if (!text) return false;
      Print(out, Specification(c, "", 's'), text->c_str());
      return true;
    }
  }
  return true;
}

}  // namespace

std::optional<Printed> FormatPrint(const std::string& format, PrintSource& source) {
  Printed printed;
  Arguments arguments(source);
  size_t hidden = 0;
  for (size_t at = 0; at < format.size() && printed.text.size() + hidden < kMostPrinted;) {
    const size_t percent = std::min(format.find('%', at), format.size());
    printed.text.append(format, at, percent - at);
    at = percent;
    if (at == format.size()) break;
    if (at + 1 < format.size() && format[at + 1] == '%') {
      printed.text += '%';
      at += 2;
      continue;
    }
    size_t behind = at + 1;
    auto conversion = ReadConversion(format, behind);
    if (!conversion) {
      // Printed as it stands, like everything that is no conversion.
      printed.text.append(format, at, behind - at);
      at = behind;
      continue;
    }
    if (!PrintOne(printed.text, *conversion, arguments, source)) return std::nullopt;
    hidden += HiddenCost(*conversion);
    at = behind;
  }
  if (printed.text.size() > kMostPrinted) printed.text.resize(kMostPrinted);
  printed.arguments = arguments.count();
  return printed;
}

}  // namespace vgpud::soft
