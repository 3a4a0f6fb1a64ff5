// SPDX-License-Identifier: Apache-2.0
// vgpuctl: the command line of vgpud. Options become CtlArgs; which commands there are is in command_table.cc.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/line/command_table.h"
#include "tools/vgpuctl/line/complete.h"
#include "tools/vgpuctl/line/manual.h"
#include "tools/vgpuctl/line/values.h"
#include "tools/vgpuctl/line/wrong_line.h"

namespace vgpud::tools {
namespace {

constexpr const char* kVersion = "vgpuctl " VGPUD_VERSION;

// Options that each command takes, before or after its name.
struct Everywhere {
  std::string output = "table";
  std::string timeout = "10s";
  const CLI::Option* timeout_option = nullptr;
};

void AddEverywhere(CLI::App& app, CtlArgs& args, Everywhere& everywhere) {
  app.set_version_flag("--version", kVersion);
  app.add_option(
         "--runtime-dir", args.runtime_dir,
         "The daemon's directory (default: $VGPUD_RUNTIME_DIR, else $XDG_RUNTIME_DIR/vgpud where an ordinary user's "
         "own vgpud serves, else /run/vgpud)")
      ->type_name("DIRECTORY");
  app.add_option("-o,--output", everywhere.output,
                 "table for people, wide with all columns, name for names only; csv, json and yaml for programs")
      ->check(OneOf({"table", "wide", "name", "csv", "json", "yaml"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  everywhere.timeout_option =
      app.add_option("--timeout", everywhere.timeout,
                     "How long to wait for an answer; if given, also for a daemon that is still starting")
          ->check(Patience())
          ->type_name("TIME")
          ->capture_default_str();
}

Format FormatOf(const std::string& word) {
  static constexpr struct {
    const char* word;
    Format format;
  } kFormats[] = {{"wide", Format::kWide},
                  {"name", Format::kName},
                  {"csv", Format::kCsv},
                  {"json", Format::kJson},
                  {"yaml", Format::kYaml}};
  for (const auto& row : kFormats)
    if (word == row.word) return row.format;
  return Format::kTable;
}

// Runs until an answer fails, or until it is interrupted. A terminal shows the last answer, CSV has its headings once.
int Watch(Run* run, CtlArgs args) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    if (is_terminal) fmt::print("\x1b[H\x1b[2J");
    const int code = run(args);
    if (code != kExitOk || std::fflush(stdout) != 0) return code;
    if (args.view.format == Format::kCsv) args.view.headings = false;
    std::this_thread::sleep_for(*args.watch);
  }
}

int PrintHelp(const CLI::App& app, const std::string& word) {
  const CLI::App* const command = word.empty() ? &app : FindCommand(app, word);
  if (command == nullptr) return Complain(kExitUsage, NoSuchCommand(app, word));
  const std::string name = word.empty() ? "vgpuctl" : "vgpuctl " + command->get_name();
  fmt::print("{}", command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
  return kExitOk;
}

// Prints the help of the command that was typed, under its own name also where an alias was typed. CLI11 would print
// the path of this program there.
int PrintHelpOfLine(const CLI::App& app) {
  const auto typed = app.get_subcommands();
  return PrintHelp(app, typed.empty() ? "" : typed.front()->get_name());
}

// Also of a line that can't be parsed.
bool WantsJson(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-ojson" || words[i] == "--output=json") return true;
    if ((words[i] == "-o" || words[i] == "--output") && i + 1 < words.size() && words[i + 1] == "json") return true;
  }
  return false;
}

// What the scripts of shells and of packages call; it is no command for people. nullopt: the line is another one.
std::optional<int> RunForBuilders(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words[0] == "complete") return Complete(app, {words.begin() + 1, words.end()});
  if (words[0] != "manual" || words.size() != 2) return std::nullopt;
  const auto written = WriteManual(app, VGPUD_VERSION, words[1]);
  return written ? kExitOk : Complain(kExitFailed, written.error().context);
}

std::chrono::milliseconds Timeout(const CtlArgs& args, const std::string& text) {
  const bool for_ever = (args.queue || !args.wait_for.empty()) && !args.wait_for_daemon;
  return for_ever ? std::chrono::hours{24 * 7} : *ParsePatience(text);
}

}  // namespace
}  // namespace vgpud::tools

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::tools;
  CtlArgs args;
  Everywhere everywhere;
  Run* run = nullptr;
  CLI::App app{
      "Controls vgpud, which shares GPUs among virtual functions (VFs).\n"
      "Exit codes: 0 ok, 1 failed, 2 bad usage, 3 no daemon, 4 no such VF, 5 refused, 6 timed out, 7 differs or, with "
      "apply --detailed-exitcode, changed."};
  app.require_subcommand(1);
  app.fallthrough();
  AddEverywhere(app, args, everywhere);
  AddCommands(app, args, &run);
  std::string explained;
  CLI::App* const help = AddCommand(app, "help", "Explain vgpuctl, or one of its commands.", "vgpuctl help create");
  help->add_option("command", explained, "The command (default: all)")->type_name("COMMAND");
  CLI::App* const version = AddCommand(app, "version", "Print the version of vgpuctl.", "vgpuctl version");

  std::string shell;
  CLI::App* const completion =
      AddCommand(app, "completion", "Print the script that completes command lines of vgpuctl in a shell.",
                 "vgpuctl completion bash > /etc/bash_completion.d/vgpuctl");
  completion->add_option("shell", shell, "bash, zsh or fish")->required()->check(OneOf({"bash", "zsh", "fish"}));

  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (const auto code = RunForBuilders(app, words)) return *code;
  if (WantsJson(words)) ComplainInJson();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return PrintHelpOfLine(app);
  } catch (const CLI::CallForVersion&) {
    return PrintRaw(fmt::format("{}\n", kVersion));
  } catch (const CLI::ParseError& e) {
    return Complain(kExitUsage, WhatIsWrong(app, words, e));
  }
  if (const std::string wrong = WhatWasMistaken(app, words); !wrong.empty()) return Complain(kExitUsage, wrong);
  if (help->parsed()) return PrintHelp(app, explained);
  if (completion->parsed()) return PrintRaw(CompletionScript(shell));
  if (version->parsed()) return PrintRaw(fmt::format("{}\n", kVersion));
  std::erase_if(args.knobs, [](const auto& knob) { return knob.second.empty(); });
  const std::string command = app.get_subcommands().front()->get_name();
  if (const std::string why_not = WhyNotIn(command, everywhere.output); !why_not.empty())
    return Complain(kExitUsage, why_not);
  args.view.format = FormatOf(everywhere.output);
  args.json = args.view.is_data();
  args.wait_for_daemon = everywhere.timeout_option->count() > 0;
  args.timeout = Timeout(args, everywhere.timeout);
  args.interval = *ParsePatience(args.every);
  return args.watch ? Watch(run, args) : run(args);
}
