// SPDX-License-Identifier: Apache-2.0
#include "vgpud/config/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "base/event_budget.h"
#include "base/fd.h"
#include "base/text/toml_file.h"
#include "vgpud/model/nearest.h"

namespace vgpud::daemon {
namespace {

namespace fs = std::filesystem;

constexpr off_t kMostBytes = 1 << 20;
constexpr std::string_view kBudgets = "event_budget";
constexpr std::string_view kSiteTable = "site";
constexpr std::string_view kCalendars = "calendar";
constexpr std::string_view kGpu = "gpu";
constexpr std::string_view kVf = "vf";

// Tables of tables that have the same keys, one for each thing.
constexpr struct {
  std::string_view table;
  const char* flag;
  std::vector<std::string> (*keys)();
} kNamed[] = {{"profile", kProfile, &ProfileKeys}, {"tenant", kTenant, &QuotaKeys}, {"user", kUser, &UserKeys}};

std::optional<std::string> TextOf(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<int64_t>()) return std::to_string(*number);
  if (const auto number = node.value_exact<double>()) {
    const std::string text = fmt::format("{}", *number);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  return std::nullopt;
}

// The keys of a table: the flag that each stands for, and what its text begins with ("opens=").
using Keys = std::map<std::string, FlagValue>;
using Tables = std::map<std::string, Keys>;
Tables TablesOf(const CLI::App& known) {
  Tables tables;
  for (const CLI::Option* option : known.get_options()) {
    const std::string flag = "--" + option->get_lnames().front();
    const auto& limits = option->get_multi_option_policy();
    if (!IsConfigured(*option) || limits == CLI::MultiOptionPolicy::TakeAll) continue;
    const std::string key = KeyOf(*option);
    tables[option->get_group()][key.substr(key.find('.') + 1)] = {flag, ""};
  }
  for (const auto& named : kNamed) tables[std::string(named.table)];
  tables[std::string(kCalendars)];
  for (const std::string& name : QuotaKeys()) tables[std::string(kSiteTable)][name] = {kSite, name + "="};
  for (const char* name : kEventNames) tables[std::string(kBudgets)][name] = {kEventBudget, fmt::format("{}=", name)};
  return tables;
}

std::vector<std::string> NamesOf(const auto& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

const auto* FindNamed(std::string_view table) {
  const auto* found =
      std::find_if(std::begin(kNamed), std::end(kNamed), [&](const auto& named) { return named.table == table; });
  return found != std::end(kNamed) ? found : nullptr;
}

// One file; what is wrong is gathered.
class Reader {
 public:
  Reader(TomlErrors& errors, const Tables& tables) : errors_(errors), tables_(tables) {}

  void Read(const toml::table& file) {
    for (const auto& [name, node] : file) {
      const auto table = tables_.find(std::string(name.str()));
      if (table == tables_.end())
        errors_.Add(name.source(), fmt::format("\"{}\" is no table here: {}", name.str(),
                                               control::DidYouMean(name.str(), NamesOf(tables_))));
      else if (!node.is_table())
        errors_.Add(name.source(), fmt::format("{0} is a table: write [{0}] and its keys below", name.str()));
      else if (const auto* named = FindNamed(table->first))
        ReadNamed(*named, *node.as_table());
      else if (table->first == kCalendars)
        ReadCalendar(*node.as_table());
      else if (table->first == kGpu)
        ReadGpus(*node.as_table(), table->second);
      else
        ReadTable(table->first, table->second, *node.as_table());
    }
  }
  std::vector<FileValue> Take() { return std::move(values_); }

 private:
  // `begin`: of the text of each, before the name.
  static Keys KeysFor(const std::vector<std::string>& names, const char* flag, const std::string& begin) {
    Keys keys;
    for (const std::string& name : names) keys[name] = {flag, fmt::format("{}{}=", begin, name)};
    return keys;
  }
  // Calls read(name, table) for each table in `things`.
  template <class F>
  void EachTable(std::string_view what, const toml::table& things, F read) {
    for (const auto& [name, node] : things) {
      if (node.is_table())
        read(std::string(name.str()), *node.as_table());
      else
        errors_.Add(name.source(),
                    fmt::format("\"{0}\" is no {1}: write [{1}.NAME] and its keys below", name.str(), what));
    }
  }
  void ReadNamed(const auto& named, const toml::table& things) {
    EachTable(named.table, things, [&](const std::string& name, const toml::table& entries) {
      ReadTable(fmt::format("{}.{}", named.table, name), KeysFor(named.keys(), named.flag, name + "."), entries);
    });
  }
  void ReadCalendar(const toml::table& periods) {
    EachTable(kCalendars, periods, [&](const std::string& name, const toml::table& period) {
      const std::string table = fmt::format("{}.{}", kCalendars, name), begin = name + ".";
      toml::table own;
      for (const auto& [key, node] : period) {
        const std::string part(key.str());
        const toml::table* settings = node.as_table();
        if (settings == nullptr || (part != kVf && part != kGpu))
          own.insert(key, node);
        else if (part == kGpu)
          ReadGpuSettings(fmt::format("{}.{}", table, part), fmt::format("{}{}.", begin, part), *settings);
        else
          EachTable(fmt::format("{}.{}", table, part), *settings, [&](const std::string& vf, const toml::table& of_vf) {
            ReadTable(fmt::format("{}.{}.{}", table, part, vf),
                      KeysFor(PeriodVfKeys(), kCalendar, fmt::format("{}{}.{}.", begin, part, vf)), of_vf);
          });
      }
      ReadTable(table, KeysFor(PeriodKeys(), kCalendar, begin), own);
    });
  }
  // Tables within it are of GPUs by name.
  void ReadGpuSettings(const std::string& table, const std::string& begin, const toml::table& settings) {
    toml::table own;
    for (const auto& [name, node] : settings) {
      if (const toml::table* of_gpu = node.as_table())
        ReadTable(fmt::format("{}.{}", table, name.str()),
                  KeysFor(PeriodGpuKeys(), kCalendar, fmt::format("{}{}.", begin, name.str())), *of_gpu);
      else
        own.insert(name, node);
    }
    ReadTable(table, KeysFor(PeriodGpuKeys(), kCalendar, begin), own);
  }
  // Tables [gpu.NAME] are GPUs (KEY = {...} is none, but a slip of the pen), the rest is about all of them.
  void ReadGpus(const toml::table& gpu, const Keys& keys) {
    toml::table own;
    for (const auto& [name, node] : gpu) {
      const std::string text(name.str());
      if (!node.is_table() || node.as_table()->is_inline() || keys.contains(text)) {
        own.insert(name, node);
        continue;
      }
      const FlagValue served{kWithGpu, text};
      const std::string table = fmt::format("{}.{}", kGpu, text);
      if (const auto refusal = WhyNot(served)) {
        errors_.Add(name.source(), fmt::format("[{}]: {}", table, *refusal));
        continue;
      }
      values_.push_back({served, table, Where(name)});
      ReadTable(table, KeysFor(GpuKeys(), kWithGpu, text + "."), *node.as_table());
    }
    ReadTable(std::string(kGpu), keys, own);
  }
  void ReadTable(const std::string& table, const Keys& keys, const toml::table& entries) {
    for (const auto& [name, node] : entries) {
      const auto key = keys.find(std::string(name.str()));
      if (key == keys.end()) {
        errors_.Add(name.source(), fmt::format("[{}] has no key \"{}\": {}", table, name.str(),
                                               control::DidYouMean(name.str(), NamesOf(keys))));
        continue;
      }
      const auto text = TextOf(node);
      if (!text) {
        errors_.Add(name.source(),
                    fmt::format("[{}] {}: must be text in quotes, a number, true or false", table, name.str()));
        continue;
      }
      if (text->find('\0') != std::string::npos) {
        errors_.Add(name.source(), fmt::format("[{}] {}: no text has a character 0", table, name.str()));
        continue;
      }
      const FlagValue value{key->second.flag, key->second.text + *text};
      if (const auto refusal = WhyNot(value))
        errors_.Add(name.source(), fmt::format("[{}] {} = {}: {}", table, name.str(), *text, *refusal));
      else
        values_.push_back({value, fmt::format("{}.{}", table, name.str()), Where(name)});
    }
  }
  std::string Where(const toml::key& name) const {
    return fmt::format("{}:{}", errors_.path(), name.source().begin.line);
  }

  TomlErrors& errors_;
  const Tables& tables_;
  std::vector<FileValue> values_;
};

// Whoever may write it decides what a daemon of root does.
Result<std::string> ReadTrusted(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return FailErrno(fmt::format("cannot read {}", path));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return FailErrno(fmt::format("cannot read {}", path));
  const auto refuse = [&](std::string_view why) {
    return Fail(std::errc::invalid_argument, fmt::format("{}: {}", path, why));
  };
  if (!S_ISREG(about.st_mode)) return refuse("is no ordinary file");
  if ((about.st_uid != 0 && about.st_uid != ::geteuid()) || (about.st_mode & S_IWOTH) != 0 ||
      (about.st_gid != 0 && about.st_gid != ::getegid() && (about.st_mode & S_IWGRP) != 0))
    return refuse(
        "somebody else may write to it; give it to root or to yourself, and see that others may not write (chmod "
        "go-w)");
  if (about.st_size > kMostBytes) return refuse(fmt::format("has {} bytes, more than {}", about.st_size, kMostBytes));
  std::string text(static_cast<size_t>(about.st_size), '\0');
  size_t got = 0;
  for (ssize_t n = 1; n > 0 && got < text.size(); got += static_cast<size_t>(n)) {
    n = ::read(file.get(), text.data() + got, text.size() - got);
    if (n < 0) return FailErrno(fmt::format("cannot read {}", path));
  }
  text.resize(got);
  return text;
}

}  // namespace

Result<std::vector<std::string>> FindConfigFiles(const std::string& file, bool needed) {
  std::vector<std::string> files;
  std::error_code error;
  if (needed || fs::exists(file, error)) files.push_back(file);
  std::vector<std::string> more;
  for (fs::directory_iterator it(file + ".d", error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".toml") more.push_back(it->path());
  if (error && error != std::errc::no_such_file_or_directory)
    return Fail(std::errc::io_error, fmt::format("cannot read {}.d: {}", file, error.message()));
  std::sort(more.begin(), more.end());
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

Result<std::vector<FileValue>> ReadConfigFile(const std::string& path, const CLI::App& known) {
  const Tables tables = TablesOf(known);
  const std::string text = TRY(ReadTrusted(path));
  TomlErrors errors(path);
  Reader reader(errors, tables);
  ReadToml(text, errors, [&](const toml::table& file) { reader.Read(file); });
  if (!errors.empty()) return errors.Refuse();
  return reader.Take();
}

}  // namespace vgpud::daemon
