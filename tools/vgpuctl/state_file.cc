// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/state_file.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/text/toml_file.h"
#include "base/units.h"
#include "tools/vgpuctl/knobs.h"
#include "tools/vgpuctl/owner.h"
#include "vgpud/model/api.h"
#include "vgpud/model/nearest.h"

namespace vgpud::tools {
namespace {

constexpr size_t kMostBytes = 1 << 20;

class StateReader {
 public:
  explicit StateReader(TomlErrors& errors) : errors_(errors) {}

  void Read(const toml::table& file) {
    for (const auto& [name, node] : file) {
      const toml::table* table = node.as_table();
      if (name.str() != "gpu" && name.str() != "vf")
        Wrong(name,
              fmt::format("\"{}\" is no table here: {}", name.str(), control::DidYouMean(name.str(), {"gpu", "vf"})));
      else if (table == nullptr)
        Wrong(name, fmt::format("{} must be a table", name.str()));
      else
        name.str() == "gpu" ? ReadGpu(*table) : ReadVfs(*table);
    }
  }
  WantedState Take() { return std::move(state_); }

 private:
  void Wrong(const toml::key& where, std::string_view what) { errors_.Add(where.source(), what); }
  // Tables in it that are no knob are GPUs of their own.
  void ReadGpu(const toml::table& gpu) {
    for (const auto& [name, node] : gpu) {
      const std::string key(name.str());
      if (node.is_table() && control::IsValidName(key) && FindKnob(key, false) == nullptr) {
        CtlJson& own = state_.gpus.emplace(key, CtlJson::object()).first->second;
        for (const auto& [own_key, value] : *node.as_table())
          ReadGpuKey(own_key, value, &own, fmt::format("gpu.{}", key));
      } else {
        ReadGpuKey(name, node, &state_.gpu, "gpu");
      }
    }
  }
  void ReadGpuKey(const toml::key& name, const toml::node& node, CtlJson* gpu, const std::string& table) {
    const std::string key(name.str());
    if (key == "policy" || key == "idle")
      PutText(name, node, &(*gpu)[key]);
    else if (const auto* knob = FindKnob(key, false); knob == nullptr)
      Unknown(fmt::format("[{}]", table), name, false, {"policy", "idle"});
    else if (!knob->per_group)
      PutKnob(*knob, name, node, &(*gpu)[key]);
    else if (!node.is_table())
      Wrong(name, fmt::format("{1} is a table: write [{0}.{1}] and lines like 3 = 200 below", table, key));
    else
      for (const auto& [group, weight] : *node.as_table())
        PutKnob(*knob, group, weight, &(*gpu)[key][std::string(group.str())]);
  }
  void ReadVfs(const toml::table& vfs) {
    for (const auto& [name, node] : vfs) {
      if (!control::IsValidName(name.str()) || !node.is_table()) {
        Wrong(name, fmt::format("\"{}\" is no VF: write [vf.NAME] and its keys below", name.str()));
        continue;
      }
      WantedVf& vf = state_.vfs[std::string(name.str())];
      for (const auto& [key, value] : *node.as_table()) ReadVfKey(key, value, &vf, fmt::format("[vf.{}]", name.str()));
    }
  }
  void ReadVfKey(const toml::key& name, const toml::node& node, WantedVf* vf, const std::string& table) {
    const std::string key(name.str());
    if (key == "vram") return PutBytes(name, node, &vf->vram_bytes);
    if (key == "host_memory") return PutBytes(name, node, &vf->host_memory_bytes);
    if (key == "paused") {
      if (!node.is_boolean()) return Wrong(name, "paused must be true or false");
      vf->settings[key] = **node.as_boolean();
    } else if (key == "profile" || key == "gpu" || key == "tenant") {
      CtlJson text;
      PutText(name, node, &text);
      if (text.is_string())
        (key == "gpu" ? vf->gpu : key == "tenant" ? vf->tenant : vf->profile) = text.get<std::string>();
    } else if (key == "owner") {
      CtlJson text;
      PutText(name, node, &text);
      const auto fields = text.is_string() ? OwnerFields(text.get<std::string>()) : Result<CtlJson>(CtlJson::object());
      fields ? void(vf->owner = OwnerText(*fields)) : Wrong(name, "owner " + fields.error().context);
    } else if (const auto* knob = FindKnob(key, true)) {
      PutKnob(*knob, name, node, &vf->settings[key]);
    } else {
      Unknown(table, name, true, {"vram", "host_memory", "paused", "profile", "gpu", "tenant", "owner"});
    }
  }
  static const control::KnobInfo* FindKnob(const std::string& field, bool per_vf) {
    const control::KnobInfo* knob = control::FindKnob(field);
    return knob != nullptr && knob->per_vf == per_vf ? knob : nullptr;
  }
  void Unknown(const std::string& table, const toml::key& name, bool per_vf, std::vector<std::string> keys) {
    for (const auto& knob : control::Knobs())
      if (knob.per_vf == per_vf) keys.push_back(knob.field);
    Wrong(name, fmt::format("{} has no key \"{}\": {}", table, name.str(), control::DidYouMean(name.str(), keys)));
  }
  void PutText(const toml::key& name, const toml::node& node, CtlJson* value) {
    if (!node.is_string()) return Wrong(name, fmt::format("{} must be text in quotes", name.str()));
    *value = **node.as_string();
  }
  void PutBytes(const toml::key& name, const toml::node& node, std::optional<uint64_t>* bytes) {
    if (!node.is_string()) return Wrong(name, fmt::format("{} must be an amount in quotes, like \"1GiB\"", name.str()));
    const auto parsed = ParseBytes(**node.as_string());
    if (!parsed) return Wrong(name, fmt::format("{} {}", name.str(), parsed.error().context));
    *bytes = *parsed;
  }
  void PutKnob(const control::KnobInfo& knob, const toml::key& name, const toml::node& node, CtlJson* value) {
    if (const auto number = node.value_exact<int64_t>()) {
      *value = *number;
    } else if (const auto real = node.value_exact<double>(); real && std::isfinite(*real)) {
      *value = *real;
    } else if (const auto text = node.value_exact<std::string>()) {
      const auto parsed = ParseKnob(knob, *text);
      if (!parsed) return Wrong(name, fmt::format("{} {}", name.str(), parsed.error().context));
      *value = *parsed;
    } else {
      Wrong(name, fmt::format("{} must be a number, or text in quotes like \"default\"", name.str()));
    }
  }

  TomlErrors& errors_;
  WantedState state_;
};

std::string Literal(const CtlJson& value) { return value.is_null() ? "\"none\"" : value.dump(); }

// Exact, unlike a figure for people.
std::string Bytes(uint64_t bytes) {
  const std::string text = FormatBytes(bytes);
  const auto again = ParseBytes(text);
  if (again && *again == bytes) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}B\"", bytes);
}

}  // namespace

Result<WantedState> ParseState(const std::string& text, const std::string& path) {
  TomlErrors errors(path);
  StateReader reader(errors);
  ReadToml(text, errors, [&](const toml::table& file) { reader.Read(file); });
  if (!errors.empty()) return errors.Refuse();
  return reader.Take();
}

Result<WantedState> ReadStateFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened{path == "-" ? nullptr : std::fopen(path.c_str(), "re"),
                                                               &std::fclose};
  if (path != "-" && opened == nullptr) return FailErrno(fmt::format("cannot read {}", path));
  std::FILE* const file = opened != nullptr ? opened.get() : stdin;
  std::string text(kMostBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  if (std::ferror(file) != 0) return FailErrno(fmt::format("cannot read {}", path));
  if (text.size() > kMostBytes)
    return Fail(std::errc::file_too_large, fmt::format("{} has more than {} bytes", path, kMostBytes));
  return ParseState(text, path);
}

namespace {

std::string GpuText(const CtlJson& gpu, const std::string& table) {
  std::string text = fmt::format("[{}]\n", table);
  for (const char* key : {"policy", "idle"}) text += fmt::format("{} = {}\n", key, Literal(gpu.value(key, CtlJson())));
  std::string groups;
  for (const auto& knob : control::Knobs()) {
    if (knob.per_vf) continue;
    if (!knob.per_group) {
      text += fmt::format("{} = {}\n", knob.field, Literal(gpu.value(knob.field, CtlJson())));
      continue;
    }
    const CtlJson weights = gpu.value(knob.field, CtlJson::object());
    for (const auto& group : weights.items()) groups += fmt::format("{} = {}\n", group.key(), Literal(group.value()));
    if (!groups.empty()) groups = fmt::format("\n[{}.{}]\n{}", table, knob.field, groups);
  }
  return text + groups;
}

std::string VfsText(const CtlJson& vfs, bool with_gpu) {
  std::string text;
  for (const CtlJson& vf : vfs) {
    if (vf.value("transient", false) || Text(vf, "state") == "lost") continue;
    text += fmt::format("\n[vf.{}]\n", Text(vf, "name"));
    if (with_gpu) text += fmt::format("gpu = {}\n", Literal(vf.value("gpu", CtlJson())));
    if (const std::string tenant = Text(vf, "tenant"); !tenant.empty())
      text += fmt::format("tenant = \"{}\"\n", tenant);
    if (const std::string owner = OwnerText(vf); !owner.empty()) text += fmt::format("owner = \"{}\"\n", owner);
    text += fmt::format("vram = {}\nhost_memory = {}\n", Bytes(Number(vf, "vram_bytes")),
                        Bytes(Number(vf, "host_memory_bytes")));
    for (const auto& knob : control::Knobs()) {
      if (!knob.per_vf) continue;
      const bool automatic = knob.field == "slice_us" && !vf.value("slice_fixed", false);
      text += fmt::format("{} = {}\n", knob.field, automatic ? "\"auto\"" : Literal(vf.value(knob.field, CtlJson())));
    }
    text += fmt::format("paused = {}\n", vf.value("paused", false));
  }
  return text;
}

}  // namespace

std::string StateText(const CtlJson& gpu, const CtlJson& vfs) { return GpuText(gpu, "gpu") + VfsText(vfs, false); }

std::string StateTextOfAll(const CtlJson& gpus, const CtlJson& vfs) {
  if (gpus.size() == 1) return StateText(gpus[0], vfs);
  std::string text;
  for (const CtlJson& gpu : gpus) {
    if (!text.empty()) text += "\n";
    text += GpuText(gpu, fmt::format("gpu.{}", Text(gpu, "name")));
  }
  return text + VfsText(vfs, true);
}

}  // namespace vgpud::tools
