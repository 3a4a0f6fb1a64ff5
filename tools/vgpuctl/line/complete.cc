// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/line/complete.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/line/values.h"
#include "tools/vgpuctl/line/wrong_line.h"

namespace vgpud::tools {
namespace {

constexpr std::chrono::milliseconds kPatience{1'000};

struct Candidate {
  std::string word;
  std::string about = {};
};
using Candidates = std::vector<Candidate>;

// What vgpud has names of, by the type of an option.
constexpr struct {
  const char* type;
  const char* path;
  const char* list;
} kNames[] = {{"VF", "/v1/vfs", "vfs"},
              {"GPU", "/v1/gpus", "gpus"},
              {"PROFILE", "/v1/profiles", "profiles"},
              {"TENANT", "/v1/tenants", "tenants"}};
constexpr const char* kFiles[] = {"FILE", "DIRECTORY"};

// A line up to the word that is completed.
struct Begun {
  const CLI::App* command = nullptr;
  const CLI::Option* open = nullptr;  // whose value comes next
  std::vector<std::string> positionals;
  Contact contact;
};

const CLI::Option* FindOption(const CLI::App& app, const CLI::App* command, const std::string& name) {
  const CLI::Option* const own = command != nullptr ? command->get_option_no_throw(name) : nullptr;
  return own != nullptr ? own : app.get_option_no_throw(name);
}

Begun ReadLine(const CLI::App& app, const std::vector<std::string>& words) {
  Begun line;
  for (const std::string& word : words) {
    if (line.open != nullptr) {
      if (word == "=") continue;  // a shell's own cut of --output=json
      if (line.open->check_lname("runtime-dir")) line.contact.runtime_dir = word;
      line.open = nullptr;
    } else if (word.size() > 1 && word[0] == '-') {
      const CLI::Option* const option = FindOption(app, line.command, word);
      if (option != nullptr && option->get_items_expected_max() > 0) line.open = option;
      if (word.starts_with("--runtime-dir=")) line.contact.runtime_dir = word.substr(word.find('=') + 1);
    } else if (line.command == nullptr) {
      line.command = FindCommand(app, word);
    } else {
      line.positionals.push_back(word);
    }
  }
  return line;
}

Candidates CommandsOf(const CLI::App& app) {
  Candidates all;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    all.push_back({command->get_name(), command->get_description()});
  return all;
}

Candidates OptionsOf(const CLI::App& app, const CLI::App* command) {
  Candidates all;
  for (const CLI::App* of : {command, &app}) {
    if (of == nullptr) continue;
    for (const CLI::Option* option : of->get_options())
      for (const std::string& name : option->get_lnames()) all.push_back({"--" + name, option->get_description()});
  }
  return all;
}

Candidates NamesOf(const Contact& contact, const char* path, const char* list) {
  Contact shortly = contact;
  shortly.timeout = kPatience;
  Candidates names;
  const auto answer = TryToAsk(shortly, "GET", path);
  if (!answer) return names;
  for (const CtlJson& each : answer->json.value(list, CtlJson::array()))
    names.push_back({Text(each, "name"), Text(each, "state")});
  return names;
}

// The values of an option or of a name in its place; nullopt: files fit.
std::optional<Candidates> ValuesOf(const CLI::App& app, const CLI::Option& option, const Contact& contact) {
  Candidates values;
  for (const std::string& word : AllowedWords(option)) values.push_back({word});
  if (!values.empty()) return values;
  const std::string type = option.get_type_name();
  if (type == "COMMAND") return CommandsOf(app);
  if (type == "yes|no") return Candidates{{"yes"}, {"no"}};
  for (const auto& row : kNames)
    if (type == row.type) return NamesOf(contact, row.path, row.list);
  if (std::find(std::begin(kFiles), std::end(kFiles), type) != std::end(kFiles)) return std::nullopt;
  return values;
}

// Which positional takes the next word; nullptr: none.
const CLI::Option* NextPositional(const Begun& line) {
  size_t room = 0;
  for (const CLI::Option* option :
       line.command->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    room += static_cast<size_t>(option->get_items_expected_max());
    if (line.positionals.size() < room) return option;
  }
  return nullptr;
}

std::optional<Candidates> CandidatesFor(const CLI::App& app, const Begun& line, const std::string& current) {
  if (line.open != nullptr) return ValuesOf(app, *line.open, line.contact);
  if (current.starts_with("-")) return OptionsOf(app, line.command);
  if (line.command == nullptr) return CommandsOf(app);
  const CLI::Option* const next = NextPositional(line);
  auto values = next != nullptr ? ValuesOf(app, *next, line.contact) : Candidates{};
  if (values)
    std::erase_if(*values, [&line](const Candidate& each) {
      return std::find(line.positionals.begin(), line.positionals.end(), each.word) != line.positionals.end();
    });
  return values;
}

constexpr const char* kBash = R"(# bash completion of vgpuctl
_vgpuctl() {
  local answer line
  COMPREPLY=()
  answer=$(vgpuctl complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || { compopt -o default; return; }
  while IFS= read -r line; do
    [ -z "$line" ] || COMPREPLY+=("${line%%$'\t'*}")
  done <<<"$answer"
}
complete -F _vgpuctl vgpuctl
)";
constexpr const char* kZsh = R"(#compdef vgpuctl
_vgpuctl() {
  local answer line
  local -a candidates
  answer=$(vgpuctl complete "${(@)words[2,CURRENT]}" 2>/dev/null) || { _files; return; }
  for line in "${(@f)answer}"; do
    [[ -z $line ]] || candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe vgpuctl candidates
}
if [ "$funcstack[1]" = _vgpuctl ]; then _vgpuctl "$@"; else compdef _vgpuctl vgpuctl; fi
)";
constexpr const char* kFish = R"(# fish completion of vgpuctl
function __vgpuctl_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  vgpuctl complete $words[2..-1] "$current" 2>/dev/null
  or __fish_complete_path "$current"
end
complete -c vgpuctl -f -a '(__vgpuctl_complete)'
)";

}  // namespace

int Complete(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> before(words.begin(), words.end() - (words.empty() ? 0 : 1));
  std::string current = words.empty() ? "" : words.back();
  // A value in the same word; the candidates then begin with the option, but where the shell has cut it.
  std::string prefix;
  if (current == "=") current.clear();
  if (const size_t equals = current.find('='); current.starts_with("--") && equals != std::string::npos) {
    prefix = current.substr(0, equals + 1);
    before.push_back(current.substr(0, equals));
    current.erase(0, equals + 1);
  }
  const auto candidates = CandidatesFor(app, ReadLine(app, before), current);
  if (!candidates) return kFilesFit;
  for (const Candidate& each : *candidates) {
    const std::string about = each.about.substr(0, each.about.find_first_of("\n\t"));
    if (each.word.starts_with(current)) fmt::print("{}{}\t{}\n", prefix, each.word, about);
  }
  return kExitOk;
}

std::string CompletionScript(const std::string& shell) {
  static constexpr struct {
    const char* shell;
    const char* script;
  } kScripts[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  for (const auto& row : kScripts)
    if (shell == row.shell) return row.script;
  return "";
}

}  // namespace vgpud::tools
