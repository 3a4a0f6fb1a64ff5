// SPDX-License-Identifier: Apache-2.0
// Lists in the format that was typed: a table, a wide one, names, CSV, JSON, YAML. For the sources of subcommands only:
// it brings the whole JSON library.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/view.h"

namespace vgpud::tools {

struct Column {
  const char* heading;
  const char* field;            // of a row; CSV has its name and its plain value
  const char* usual = nullptr;  // left out of a table in which all rows have this
  bool wide = false;            // in wide tables and CSV only
};

class Rows {
 public:
  // `list`: the member of the answer that has the rows.
  Rows(std::string list, std::span<const Column> columns) : list_(std::move(list)), columns_(columns) {}
  // `shown` has the fields of the columns; `answered` is what vgpud said of it.
  void Add(CtlJson shown, CtlJson answered) { rows_.push_back({std::move(shown), std::move(answered)}); }
  void Add(const CtlJson& row) { Add(row, row); }
  // Leaves the rows that pass the filters, and sorts them. The error says which column there is not.
  [[nodiscard]] Result<void> Choose(const View& view);
  // As text. Data formats: `answer` with the rows that are left.
  std::string Text(const View& view, const CtlJson& answer) const;

 private:
  struct Row {
    CtlJson shown;
    CtlJson answered;
  };
  [[nodiscard]] Result<const Column*> Find(const std::string& name) const;
  std::vector<const Column*> Shown(bool wide) const;
  std::string Table(const View& view) const;
  std::string Csv(const View& view) const;

  const std::string list_;
  const std::span<const Column> columns_;
  std::vector<Row> rows_;
};

// Chooses and prints them; an exit code. `below`: what people read below the table.
int PrintRows(const View& view, Rows rows, const CtlJson& answer, const std::string& below = "");
// An answer of vgpud as JSON or YAML; an exit code.
int PrintData(const View& view, const std::string& raw);
int PrintData(const View& view, const CtlJson& answer);
// A cell of a table.
std::string CellText(const std::string& field, const CtlJson& value);

}  // namespace vgpud::tools
