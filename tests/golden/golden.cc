// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

namespace vgpud::golden {
namespace {

struct KindInfo {
  std::string_view name;
  Kind kind;
  std::string_view type;  // of the register
};
constexpr KindInfo kKinds[] = {{"b16", Kind::kB16, ".b16"},
                               {"b32", Kind::kB32, ".b32"},
                               {"b64", Kind::kB64, ".b64"},
                               {"pred", Kind::kPredicate, ".pred"}};
struct AsInfo {
  std::string_view name;
  Tolerance::As as;
};
constexpr AsInfo kAs[] = {{"f16", Tolerance::As::kF16},
                          {"bf16", Tolerance::As::kBf16},
                          {"f32", Tolerance::As::kF32},
                          {"f64", Tolerance::As::kF64}};

const KindInfo& InfoOf(Kind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindInfo& k) { return k.kind == kind; });
}

std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> words;
  std::stringstream stream(line);
  for (std::string w; stream >> w;) words.push_back(w);
  return words;
}

// "%d:b32" or "%d:b32~f32,rel=-23,abs=-126".
bool ParseColumn(const std::string& text, Column& column) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  column.name = text.substr(0, colon);
  const size_t tilde = std::min(text.find('~'), text.size());
  const std::string kind = text.substr(colon + 1, tilde - colon - 1);
  const auto* k = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindInfo& i) { return i.name == kind; });
  if (k == std::end(kKinds)) return false;
  column.kind = k->kind;
  if (tilde == text.size()) return true;
  std::stringstream rest(text.substr(tilde + 1));
  for (std::string part; std::getline(rest, part, ',');) {
    const auto* as = std::find_if(std::begin(kAs), std::end(kAs), [&](const AsInfo& a) { return a.name == part; });
    if (as != std::end(kAs)) {
      column.tolerance.as = as->as;
    } else if (part.rfind("rel=", 0) == 0) {
      column.tolerance.relative = std::exp2(std::strtod(part.c_str() + 4, nullptr));
    } else if (part.rfind("abs=", 0) == 0) {
      column.tolerance.absolute = std::exp2(std::strtod(part.c_str() + 4, nullptr));
    } else {
      return false;
    }
  }
  return column.tolerance.as != Tolerance::As::kBits;
}

bool ParseExpected(const Column& column, const std::string& text, Expected& e) {
  char* end = nullptr;
  if (text == "nan") {
    e.any_nan = true;
    return true;
  }
  if (column.tolerance.as == Tolerance::As::kBits) {
    e.bits = std::strtoull(text.c_str(), &end, 16);
  } else {
    e.value = std::strtod(text.c_str(), &end);
  }
  return *end == 0;
}

bool ParseRow(const Form& f, const std::vector<std::string>& words, Row& row) {
  if (words.size() != f.in.size() + f.out.size() + 2 || words[f.in.size() + 1] != "->") return false;
  for (size_t n = 0; n < f.in.size(); ++n) {
    char* end = nullptr;
    row.in.push_back(std::strtoull(words[1 + n].c_str(), &end, 16));
    if (*end != 0) return false;
  }
  for (size_t n = 0; n < f.out.size(); ++n)
    if (!ParseExpected(f.out[n], words[2 + f.in.size() + n], row.out.emplace_back())) return false;
  return true;
}

double HalfValue(uint32_t v, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int top = (1 << exponent_bits) - 1;
  const auto fraction = static_cast<int>(v & ((1u << fraction_bits) - 1));
  const int exponent = static_cast<int>(v >> fraction_bits) & top;
  double r = 0;
  if (exponent == top) {
    r = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    const int hidden = exponent == 0 ? 0 : 1 << fraction_bits;
    r = std::ldexp(fraction + hidden, std::max(exponent, 1) - top / 2 - fraction_bits);
  }
  return (v & 0x8000) != 0 ? -r : r;
}

double FloatValue(Tolerance::As as, uint64_t bits) {
  double d = 0;
  float f = 0;
  const auto low = static_cast<uint32_t>(bits);
  switch (as) {
    case Tolerance::As::kF16:
      return HalfValue(low & 0xffff, 5);
    case Tolerance::As::kBf16:
      return HalfValue(low & 0xffff, 8);
    case Tolerance::As::kF32:
      std::memcpy(&f, &low, sizeof(f));
      return static_cast<double>(f);
    case Tolerance::As::kF64:
    case Tolerance::As::kBits:
      std::memcpy(&d, &bits, sizeof(d));
      return d;
  }
  return d;
}

uint64_t Keep(Kind kind, uint64_t v) {
  switch (kind) {
    case Kind::kB16:
      return v & 0xffff;
    case Kind::kB32:
      return v & 0xffffffff;
    case Kind::kB64:
    case Kind::kPredicate:
      return v;
  }
  return v;
}

bool IsNan(Kind kind, uint64_t v) {
  if (kind == Kind::kB64) return (v & 0x7fffffffffffffff) > 0x7ff0000000000000;
  return kind == Kind::kB32 && (v & 0x7fffffff) > 0x7f800000;
}

bool Matches(const Column& column, const Expected& e, uint64_t got) {
  if (column.tolerance.as == Tolerance::As::kBits) return e.any_nan ? IsNan(column.kind, got) : got == e.bits;
  const double v = FloatValue(column.tolerance.as, got);
  if (e.any_nan) return std::isnan(v);
  if (std::isinf(e.value) || std::isinf(v)) return v == e.value;
  const double allowed = std::max(column.tolerance.relative * std::fabs(e.value), column.tolerance.absolute);
  return std::fabs(v - e.value) <= allowed;
}

std::string Text(const Column& column, uint64_t bits) {
  char text[64];
  if (column.tolerance.as == Tolerance::As::kBits) {
    std::snprintf(text, sizeof(text), "%llx", static_cast<unsigned long long>(bits));
  } else {
    std::snprintf(text, sizeof(text), "%a (%llx)", FloatValue(column.tolerance.as, bits),
                  static_cast<unsigned long long>(bits));
  }
  return text;
}
std::string Text(const Column& column, const Expected& e) {
  if (e.any_nan) return "nan";
  if (column.tolerance.as == Tolerance::As::kBits) return Text(column, e.bits);
  char text[64];
  std::snprintf(text, sizeof(text), "%a", e.value);
  return text;
}

}  // namespace

std::vector<Form> Parse(std::string_view text, std::string& error) {
  std::vector<Form> forms;
  std::stringstream stream{std::string(text)};
  uint32_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::vector<std::string> words = Words(line);
    if (words.empty() || words[0][0] == '#') continue;
    bool fine = true;
    const std::string& what = words[0];
    if (what == "form") {
      fine = words.size() == 2;
      Form f;
      f.line = number;
      if (fine) f.name = words[1];
      forms.push_back(std::move(f));
    } else if (forms.empty()) {
      fine = false;
    } else if (what == "needs") {
      forms.back().needs = static_cast<uint32_t>(std::strtoul(words.back().c_str(), nullptr, 10));
      const char last = words.back().back();
      forms.back().reach = last == 'f' || last == 'a' ? last : 0;
    } else if (what == "block") {
      forms.back().block = static_cast<uint32_t>(std::strtoul(words.back().c_str(), nullptr, 10));
      fine = forms.back().block % 32 == 0 && forms.back().block > 0 && forms.back().block <= 128;
    } else if (what == "version") {
      forms.back().version = words.back();
    } else if (what == "module" || what == "code") {
      (what == "code" ? forms.back().code : forms.back().module).push_back(line.substr(what.size() + 1));
    } else if (what == "in" || what == "out") {
      for (size_t n = 1; n < words.size(); ++n)
        fine &= ParseColumn(words[n], (what == "in" ? forms.back().in : forms.back().out).emplace_back());
    } else if (what == "object" || what == "texels" || what == "after") {
      fine = ParseObjectLine(words, forms.back());
    } else if (what == "=") {
      fine = ParseRow(forms.back(), words, forms.back().rows.emplace_back());
    } else {
      fine = false;
    }
    if (!fine) {
      error = "line " + std::to_string(number) + ": " + line;
      return {};
    }
  }
  return forms;
}

bool RunsOn(const Form& f, uint32_t capability, bool all) {
  const bool related = f.reach == 0 || (f.reach == 'f' ? f.needs / 10 == capability / 10 : f.needs == capability);
  return related && (all || f.needs <= capability);
}

uint32_t BlocksOf(const Form& f) { return (static_cast<uint32_t>(f.rows.size()) + f.block - 1) / f.block; }

std::string PtxOf(const Form& f) {
  std::stringstream ptx;
  const std::string version = !f.version.empty() ? f.version : f.needs >= 100 ? "9.0" : f.needs >= 90 ? "8.3" : "7.8";
  ptx << ".version " << version << "\n.target sm_" << f.needs << (f.reach != 0 ? std::string(1, f.reach) : "")
      << "\n.address_size 64\n";
  for (const std::string& line : f.module) ptx << line << "\n";
  ptx << ".visible .entry golden(.param .u64 in, .param .u64 out, .param .u64 memory, "
      << ".param .u64 object)\n{\n.reg .b64 %in, %out, %m, %t, %base;\n.reg .b32 %s, %row, %flag;\n"
      << ".shared .align 1024 .b8 block[" << f.block * kPrivateBytes << "];\n";
  for (const auto* columns : {&f.out, &f.in})
    for (const Column& c : *columns) ptx << ".reg " << InfoOf(c.kind).type << " " << c.name << ";\n";
  ptx << "mov.u32 %row, %ctaid.x;\nmov.u32 %s, %tid.x;\nmad.lo.s32 %row, %row, " << f.block << ", %s;\n"
      << "shl.b32 %s, %s, 7;\nmov.u32 %flag, block;\nadd.u32 %s, %s, %flag;\n"
      << "ld.param.u64 %base, [memory];\nmul.wide.u32 %m, %row, " << kPrivateBytes << ";\nadd.u64 %m, %m, %base;\n"
      << "ld.param.u64 %base, [in];\nmul.wide.u32 %in, %row, " << 8 * f.in.size() << ";\nadd.u64 %in, %in, %base;\n"
      << "ld.param.u64 %base, [out];\nmul.wide.u32 %out, %row, " << 8 * f.out.size()
      << ";\nadd.u64 %out, %out, %base;\nld.param.u64 %t, [object];\n";
  for (size_t n = 0; n < f.in.size(); ++n) {
    const Column& c = f.in[n];
    const bool predicate = c.kind == Kind::kPredicate;
    ptx << "ld.global" << (predicate ? std::string_view(".u32") : InfoOf(c.kind).type) << " "
        << (predicate ? "%flag" : c.name) << ", [%in+" << 8 * n << "];\n";
    if (predicate) ptx << "setp.ne.u32 " << c.name << ", %flag, 0;\n";
  }
  for (const std::string& line : f.code) ptx << line << "\n";
  for (size_t n = 0; n < f.out.size(); ++n) {
    const Column& c = f.out[n];
    const bool predicate = c.kind == Kind::kPredicate;
    if (predicate) ptx << "selp.u32 %flag, 1, 0, " << c.name << ";\n";
    ptx << "st.global" << (predicate ? std::string_view(".u32") : InfoOf(c.kind).type) << " [%out+" << 8 * n << "], "
        << (predicate ? "%flag" : c.name) << ";\n";
  }
  ptx << "ret;\n}\n";
  return ptx.str();
}

std::vector<uint64_t> InputOf(const Form& f) {
  std::vector<uint64_t> in;
  for (uint32_t n = 0; n < BlocksOf(f) * f.block; ++n) {
    const Row& row = f.rows[std::min<size_t>(n, f.rows.size() - 1)];
    in.insert(in.end(), row.in.begin(), row.in.end());
  }
  return in;
}

std::string Compare(const Form& f, const std::vector<uint64_t>& out, uint32_t* values_wrong) {
  std::string text;
  size_t wrong = 0;
  for (size_t r = 0; r < f.rows.size(); ++r) {
    for (size_t n = 0; n < f.out.size(); ++n) {
      const Column& c = f.out[n];
      const uint64_t got = Keep(c.kind, out[r * f.out.size() + n]);
      if (Matches(c, f.rows[r].out[n], got)) continue;
      if (++wrong > 8) continue;
      text += "  " + f.name + " row " + std::to_string(r) + ":";
      for (size_t k = 0; k < f.in.size(); ++k) {
        Column plain = f.in[k];
        plain.tolerance.as = Tolerance::As::kBits;
        text += " " + f.in[k].name + "=" + Text(plain, f.rows[r].in[k]);
      }
      text += ": " + c.name + " is " + Text(c, got) + ", expected " + Text(c, f.rows[r].out[n]) + "\n";
    }
  }
  if (wrong > 8) text += "  and " + std::to_string(wrong - 8) + " more\n";
  if (values_wrong != nullptr) *values_wrong = static_cast<uint32_t>(wrong);
  return text;
}

}  // namespace vgpud::golden
