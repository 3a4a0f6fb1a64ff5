// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/rows.h"

#include <fmt/core.h>
#include <fnmatch.h>
#include <strings.h>

#include <algorithm>

#include "base/units.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/table.h"
#include "tools/vgpuctl/yaml.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {
namespace {

CtlJson Value(const CtlJson& row, const char* field) {
  const auto it = row.find(field);
  return it == row.end() ? CtlJson() : *it;
}

// The value as the API has it, without quotes.
std::string Plain(const CtlJson& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted;
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return fmt::format("\"{}\"", quoted);
}

// Numbers by size, everything else by its text; what is not there comes first.
bool Less(const CtlJson& a, const CtlJson& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() < b.get<double>();
  return Plain(a) < Plain(b);
}

struct Filter {
  std::string column;
  bool is;
  std::string pattern;
};
Result<Filter> ParseFilter(const std::string& text) {
  const size_t equals = text.find('=');
  const bool is_not = equals != std::string::npos && equals > 0 && text[equals - 1] == '!';
  if (equals == std::string::npos || equals == (is_not ? 1u : 0u))
    return Fail(std::errc::invalid_argument,
                fmt::format("--filter \"{}\" is not COLUMN=VALUE (write it like state=ready or name!=guest-*)", text));
  return Filter{text.substr(0, equals - (is_not ? 1 : 0)), !is_not, text.substr(equals + 1)};
}

bool Passes(const Filter& filter, const Column& column, const CtlJson& row) {
  const CtlJson value = Value(row, column.field);
  const auto matches = [&filter](const std::string& text) {
    return ::fnmatch(filter.pattern.c_str(), text.c_str(), 0) == 0;
  };
  return (matches(Plain(value)) || matches(CellText(column.field, value))) == filter.is;
}

}  // namespace

std::string CellText(const std::string& field, const CtlJson& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_unsigned() && field.ends_with("_bytes")) return FormatBytes(value.get<uint64_t>());
  return value.is_null() || value == "" ? "-" : Readable(field, value);
}

Result<const Column*> Rows::Find(const std::string& name) const {
  std::vector<std::string> known;
  for (const Column& column : columns_) {
    if (name == column.field || ::strcasecmp(name.c_str(), column.heading) == 0) return &column;
    known.push_back(column.field);
  }
  return Fail(std::errc::invalid_argument,
              fmt::format("there is no column \"{}\": {}", name, control::DidYouMean(name, known)));
}

Result<void> Rows::Choose(const View& view) {
  for (const std::string& text : view.filters) {
    const Filter filter = TRY(ParseFilter(text));
    const Column* const column = TRY(Find(filter.column));
    std::erase_if(rows_, [&](const Row& row) { return !Passes(filter, *column, row.shown); });
  }
  if (!view.sort.empty()) {
    const Column* const column = TRY(Find(view.sort));
    std::stable_sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
      return Less(Value(a.shown, column->field), Value(b.shown, column->field));
    });
  }
  if (view.reverse) std::reverse(rows_.begin(), rows_.end());
  return {};
}

std::vector<const Column*> Rows::Shown(bool wide) const {
  std::vector<const Column*> shown;
  for (const Column& column : columns_) {
    const bool worth = column.usual == nullptr || std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
                         const std::string text = CellText(column.field, Value(row.shown, column.field));
                         return text != "-" && text != column.usual;
                       });
    if (wide || (worth && !column.wide)) shown.push_back(&column);
  }
  return shown;
}

std::string Rows::Table(const View& view) const {
  const std::vector<const Column*> shown = Shown(view.format == Format::kWide);
  std::vector<std::string> headings;
  for (const Column* column : shown) headings.push_back(column->heading);
  tools::Table table{headings};
  for (const Row& row : rows_) {
    std::vector<std::string> cells;
    for (const Column* column : shown) cells.push_back(CellText(column->field, Value(row.shown, column->field)));
    table.Row(cells);
  }
  const std::string text = table.Text();
  return view.headings ? text : text.substr(text.find('\n') + 1);
}

std::string Rows::Csv(const View& view) const {
  std::string text;
  const auto line = [&text, this](const auto& cell) {
    for (const Column& column : columns_) {
      if (&column != &columns_.front()) text += ',';
      text += CsvCell(cell(column.field));
    }
    text += '\n';
  };
  if (view.headings) line([](const char* field) { return std::string(field); });
  for (const Row& row : rows_) line([&row](const char* field) { return Plain(Value(row.shown, field)); });
  return text;
}

std::string Rows::Text(const View& view, const CtlJson& answer) const {
  std::string names;
  switch (view.format) {
    case Format::kTable:
    case Format::kWide:
      return Table(view);
    case Format::kCsv:
      return Csv(view);
    case Format::kName:
      for (const Row& row : rows_) names += Plain(Value(row.shown, columns_.front().field)) + "\n";
      return names;
    case Format::kJson:
    case Format::kYaml:
      break;
  }
  CtlJson left = answer;
  left[list_] = CtlJson::array();
  for (const Row& row : rows_) left[list_].push_back(row.answered);
  return DataText(view.format, left);
}

int PrintRows(const View& view, Rows rows, const CtlJson& answer, const std::string& below) {
  if (const auto chosen = rows.Choose(view); !chosen) return Complain(kExitUsage, chosen.error().context);
  const bool for_people = view.format == Format::kTable || view.format == Format::kWide;
  return PrintRaw(rows.Text(view, answer) + (for_people && view.headings ? below : ""));
}

int PrintData(const View& view, const std::string& raw) {
  return view.format == Format::kYaml ? PrintData(view, CtlJson::parse(raw, nullptr, false)) : PrintRaw(raw);
}

int PrintData(const View& view, const CtlJson& answer) { return PrintRaw(DataText(view.format, answer)); }

}  // namespace vgpud::tools
