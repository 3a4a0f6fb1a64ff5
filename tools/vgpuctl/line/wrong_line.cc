// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/line/wrong_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "tools/vgpuctl/line/values.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {
namespace {

// Other tools have these names for our commands.
constexpr struct {
  const char* theirs;
  const char* ours;
} kElsewhere[] = {{"start", "resume"},  {"stop", "pause"},     {"suspend", "pause"},  {"unpause", "resume"},
                  {"kill", "destroy"},  {"delete", "destroy"}, {"remove", "destroy"}, {"undefine", "destroy"},
                  {"new", "create"},    {"add", "create"},     {"make", "create"},    {"run", "create"},
                  {"get", "show"},      {"info", "show"},      {"dominfo", "show"},   {"inspect", "show"},
                  {"query", "show"},    {"status", "list"},    {"restart", "reset"},  {"reboot", "reset"},
                  {"change", "set"},    {"update", "set"},     {"patch", "set"},      {"usage", "report"},
                  {"nodeinfo", "topo"}, {"quota", "tenants"},  {"validate", "lint"},  {"diff", "assert"},
                  {"dump", "export"},   {"save", "export"},    {"reload", "config"},  {"schedule", "calendar"}};

std::string HelpOf(const CLI::App* command) {
  return command == nullptr ? "vgpuctl help" : "vgpuctl help " + command->get_name();
}

// Cuts the value off: "--weight" of "--weight=3", "-o" of "-ojson".
std::string NameOfOption(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

bool LooksLikeOption(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

const CLI::Option* FindOption(const CLI::App& app, const CLI::App* command, const std::string& name) {
  const CLI::Option* const own = command != nullptr ? command->get_option_no_throw(name) : nullptr;
  return own != nullptr ? own : app.get_option_no_throw(name);
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string NoSuchOption(const CLI::App& app, const CLI::App* command, const std::string& name) {
  std::vector<std::string> names = OptionsOf(app);
  std::string elsewhere;
  if (command != nullptr) {
    for (const std::string& own : OptionsOf(*command)) names.push_back(own);
    for (const CLI::App* other : app.get_subcommands(nullptr))
      if (other->get_option_no_throw(name) != nullptr) elsewhere += (elsewhere.empty() ? "" : ", ") + other->get_name();
  }
  const std::string who = command != nullptr ? command->get_name() : "vgpuctl";
  const auto nearest = control::Nearest(name, names);
  return fmt::format("{} has no option {}: {}", who, name,
                     !nearest.empty()    ? control::DidYouMeanOneOf(nearest)
                     : elsewhere.empty() ? HelpOf(command) + " shows all"
                                         : "these commands have it: " + elsewhere);
}

struct Line {
  const CLI::App* command = nullptr;
  std::vector<std::string> positionals;
  std::string wrong;  // empty: nothing yet
};

// Says why the word after an option is not its value; nullopt: it is.
std::optional<std::string> WhyNoValue(const CLI::App& app, const Line& line, const CLI::Option& option,
                                      const std::string& name, const std::string* next) {
  if (next != nullptr && (!LooksLikeOption(*next) || FindOption(app, line.command, NameOfOption(*next)) == nullptr))
    return std::nullopt;
  return fmt::format("{} needs a value{}: {} says which", name,
                     option.get_type_name().empty() ? "" : " (" + option.get_type_name() + ")", HelpOf(line.command));
}

Line Walk(const CLI::App& app, const std::vector<std::string>& words) {
  Line line;
  bool options = true;
  for (size_t i = 0; i < words.size() && line.wrong.empty(); ++i) {
    const std::string& word = words[i];
    if (options && word == "--") {
      options = false;
    } else if (options && LooksLikeOption(word)) {
      const std::string name = NameOfOption(word);
      const CLI::Option* const option = FindOption(app, line.command, name);
      if (option == nullptr) {
        line.wrong = NoSuchOption(app, line.command, name);
      } else if (option->get_items_expected_max() > 0 && word.size() == name.size()) {
        const std::string* const next = i + 1 < words.size() ? &words[i + 1] : nullptr;
        line.wrong = WhyNoValue(app, line, *option, name, next).value_or("");
        ++i;
      }
    } else if (line.command == nullptr) {
      line.command = FindCommand(app, word);
      if (line.command == nullptr) line.wrong = NoSuchCommand(app, word);
    } else {
      line.positionals.push_back(word);
    }
  }
  return line;
}

// "name", or "one of check, show".
std::string WhatItTakes(const CLI::Option& option) {
  const std::vector<std::string> words = AllowedWords(option);
  if (words.size() == 1) return words.front();
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "one of " : ", ") + word;
  return all.empty() ? option.get_name(true) : all;
}

// Too few or too many words that are neither options nor their values.
std::string WrongCount(const Line& line) {
  size_t room = 0;
  for (const CLI::Option* option :
       line.command->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    if (option->get_required() && room >= line.positionals.size())
      return fmt::format("{} needs {}: {} has an example", line.command->get_name(), WhatItTakes(*option),
                         HelpOf(line.command));
    room += static_cast<size_t>(option->get_items_expected_max());
  }
  if (line.positionals.size() <= room) return "";
  return fmt::format("{} takes {}, and \"{}\" is one too many: {} shows what it takes", line.command->get_name(),
                     room == 0   ? "no name"
                     : room == 1 ? "one name"
                                 : fmt::format("{} words", room),
                     line.positionals[room], HelpOf(line.command));
}

}  // namespace

const CLI::App* FindCommand(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands(nullptr))
    if (command->check_name(word)) return command;
  return nullptr;
}

std::string NoSuchCommand(const CLI::App& app, const std::string& word) {
  const std::string text = fmt::format("there is no command \"{}\": ", word);
  for (const auto& row : kElsewhere)
    if (word == row.theirs) return text + control::DidYouMeanOneOf({row.ours});
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const auto nearest = control::Nearest(word, names);
  return text + (nearest.empty() ? "vgpuctl help shows all" : control::DidYouMeanOneOf(nearest));
}

std::string WhatWasMistaken(const CLI::App& app, const std::vector<std::string>& words) {
  return Walk(app, words).wrong;
}

std::string WhatIsWrong(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error) {
  const Line line = Walk(app, words);
  if (!line.wrong.empty()) return line.wrong;
  if (line.command == nullptr) return "give a command, like vgpuctl list: vgpuctl help shows all";
  if (const std::string wrong = WrongCount(line); !wrong.empty()) return wrong;
  return fmt::format("{}: {} (see: {})", line.command->get_name(), error.what(), HelpOf(line.command));
}

}  // namespace vgpud::tools
