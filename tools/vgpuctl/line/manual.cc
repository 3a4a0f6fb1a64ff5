// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/line/manual.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/text/numbers.h"

namespace vgpud::tools {
namespace {

// Text as roff takes it: no character of it is a request or an escape.
std::string Roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() || out.back() == '\n')
      if (c == '.' || c == '\'') out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else {
      if (c == '-') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

// Today, or the day that a reproducible build asks for (UTC).
std::string Day() {
  using std::chrono::system_clock, std::chrono::year_month_day, std::chrono::days;
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  const auto told = epoch != nullptr ? ParseInteger<uint32_t>(epoch) : std::nullopt;
  const year_month_day day{std::chrono::floor<days>(told ? system_clock::from_time_t(*told) : system_clock::now())};
  return fmt::format("{:04}-{:02}-{:02}", int{day.year()}, unsigned{day.month()}, unsigned{day.day()});
}

std::string Begin(const std::string& page, const std::string& version, const std::string& about) {
  return fmt::format(".TH {} 1 \"{}\" \"vgpud {}\" \"vgpud\"\n.SH NAME\n{} \\- {}\n", Roff(Upper(page)), Day(),
                     Roff(version), Roff(page), Roff(about));
}

// "--weight NUMBER", "-o FORMAT, --output FORMAT" or a name in its place.
std::string Heading(const CLI::Option& option) {
  const std::string type = option.get_items_expected_max() > 0 ? option.get_type_name() : "";
  std::string heading;
  const auto add = [&](const std::string& name) {
    heading += fmt::format("{}\\fB{}\\fR{}", heading.empty() ? "" : ", ", Roff(name),
                           type.empty() ? "" : fmt::format(" \\fI{}\\fR", Roff(type)));
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (heading.empty()) add(option.get_name(true));
  return heading;
}

std::string OptionsOf(const CLI::App& app, const char* title) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    text += fmt::format(
        ".TP\n{}\n{}{}\n", Heading(*option), Roff(option->get_description()),
        option->get_default_str().empty() ? "" : fmt::format(" (default: {})", Roff(option->get_default_str())));
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

std::string PageOf(const CLI::App& command, const std::string& version) {
  std::string synopsis = fmt::format("\\fBvgpuctl {}\\fR [\\fIOPTIONS\\fR]", Roff(command.get_name()));
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); }))
    synopsis += fmt::format(" {}\\fI{}\\fR{}", option->get_required() ? "" : "[", Roff(option->get_name(true)),
                            option->get_required() ? "" : "]");
  std::string text = Begin("vgpuctl-" + command.get_name(), version, command.get_description());
  text += ".SH SYNOPSIS\n" + synopsis + "\n" + OptionsOf(command, "OPTIONS");
  std::string example = command.get_footer();
  if (const size_t colon = example.find(": "); colon != std::string::npos) example.erase(0, colon + 2);
  text += ".SH EXAMPLE\n.nf\n" + Roff(example) + "\n.fi\n.SH SEE ALSO\n.BR vgpuctl (1),\n.BR vgpud (8)\n";
  return text;
}

std::string MainPage(const CLI::App& app, const std::string& version) {
  std::string text = Begin("vgpuctl", version, "controls vgpud, which shares GPUs among virtual functions (VFs)");
  text += ".SH SYNOPSIS\n\\fBvgpuctl\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n.SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands(nullptr))
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(command->get_name()), Roff(command->get_description()));
  const std::string about = app.get_description();
  text += OptionsOf(app, "OPTIONS") + ".SH EXIT STATUS\n";
  text += Roff(about.substr(about.find("Exit codes: ") == std::string::npos ? 0 : about.find("Exit codes: ") + 12));
  return text + "\n.SH SEE ALSO\n.BR vgpud (8)\n";
}

Result<void> Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  return file ? Result<void>{} : FailErrno(fmt::format("cannot write {}", path));
}

}  // namespace

Result<void> WriteManual(const CLI::App& app, const std::string& version, const std::string& directory) {
  TRY(Write(directory + "/vgpuctl.1", MainPage(app, version)));
  for (const CLI::App* command : app.get_subcommands(nullptr))
    TRY(Write(fmt::format("{}/vgpuctl-{}.1", directory, command->get_name()), PageOf(*command, version)));
  return {};
}

}  // namespace vgpud::tools
