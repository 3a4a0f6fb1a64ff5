// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <set>

#include "base/fd.h"
#include "base/text/toml_file.h"
#include "vgpud/model/api.h"

namespace vgpud::kubernetes {
namespace {

constexpr size_t kMostBytes = 64 * 1024;
constexpr size_t kMostLabelBytes = 20;
constexpr size_t kMostDomainBytes = 100;
constexpr int kMostUser = INT_MAX - 1;

bool Within(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view kSmall = "abcdefghijklmnopqrstuvwxyz0123456789-";

bool IsLabel(std::string_view label) {
  return Within(label, kSmall) && label.size() <= kMostLabelBytes && label.front() != '-' && label.back() != '-';
}

bool IsDomain(std::string_view domain) {
  return Within(domain, "abcdefghijklmnopqrstuvwxyz0123456789-.") && domain.size() <= kMostDomainBytes &&
         domain.find('.') != std::string_view::npos && domain.front() != '.' && domain.front() != '-' &&
         domain.back() != '.' && domain.back() != '-';
}

class Parser {
 public:
  explicit Parser(TomlErrors& errors) : errors_(errors) {}

  Result<Config> Parse(const toml::table& file) {
    Config config;
    for (const auto& [key, node] : file) {
      if (key.str() != "resource" || !node.is_table())
        return Wrong(key.source(),
                     fmt::format("\"{}\": write [resource.\"vgpud.dev/NAME\"] and its keys below", key.str()));
      for (const auto& [name, entries] : *node.as_table())
        config.resources.push_back(TRY(ParseResource(name, entries)));
    }
    if (config.resources.empty())
      return Fail(
          std::errc::invalid_argument,
          fmt::format("{}: no resource: write [resource.\"vgpud.dev/NAME\"] and its keys below", errors_.path()));
    return config;
  }

 private:
  tl::unexpected<Error> Wrong(const toml::source_region& where, std::string_view what) {
    errors_.Add(where, what);
    return errors_.Refuse();
  }

  Result<Resource> ParseResource(const toml::key& name, const toml::node& node) {
    Resource resource;
    resource.name = std::string(name.str());
    const size_t slash = resource.name.find('/');
    resource.label = slash == std::string::npos ? "" : resource.name.substr(slash + 1);
    if (!IsLabel(resource.label) || !IsDomain(std::string_view(resource.name).substr(0, slash)))
      return Wrong(name.source(),
                   fmt::format("\"{}\" is no name of a resource: like vgpud.dev/quarter, the part after / "
                               "of at most {} small letters, digits and -",
                               resource.name, kMostLabelBytes));
    if (!labels_.insert(resource.label).second)
      return Wrong(name.source(), fmt::format("there is another resource that ends with /{}", resource.label));
    if (!node.is_table())
      return Wrong(name.source(), fmt::format("\"{0}\": write [resource.\"{0}\"] and its keys below", resource.name));
    for (const auto& [key, value] : *node.as_table()) {
      if (key.str() == "profile") {
        const auto text = value.value_exact<std::string>();
        if (!text || text->empty() || text->size() > control::kMaxNameBytes || text->find('\0') != std::string::npos)
          return Wrong(key.source(), "profile: a name in quotes, like \"1/4\" (vgpuctl profiles)");
        resource.profile = *text;
        continue;
      }
      if (key.str() == "tenant") {
        const auto text = value.value_exact<std::string>();
        if (!text || !control::IsValidName(*text))
          return Wrong(key.source(), "tenant: a name in quotes, like \"pods\" (vgpuctl tenants)");
        resource.tenant = *text;
        continue;
      }
      if (key.str() == "vm" || key.str() == "dra") {
        const auto is_so = value.value_exact<bool>();
        if (!is_so) return Wrong(key.source(), fmt::format("{}: true or false", key.str()));
        (key.str() == "vm" ? resource.vm : resource.dra) = *is_so;
        continue;
      }
      const auto number = value.value_exact<int64_t>();
      const auto field =
          std::find_if(kNumbers.begin(), kNumbers.end(), [&](const NumberKey& each) { return key.str() == each.key; });
      if (field == kNumbers.end())
        return Wrong(
            key.source(),
            fmt::format(
                "there is no \"{}\": profile, count, replicas, weight, max_weight, max_slice_us, user, vm, dra, tenant",
                key.str()));
      if (!number || *number < 1 || *number > field->most)
        return Wrong(key.source(), fmt::format("{}: a number of 1 to {}", field->key, field->most));
      field->set(&resource, static_cast<int>(*number));
    }
    if (resource.profile.empty())
      return Wrong(name.source(),
                   fmt::format("{} has no profile: how large its VFs are (vgpuctl profiles)", resource.name));
    if (const std::string why = WhyNotTogether(resource); !why.empty())
      return Wrong(name.source(), fmt::format("{} has {}", resource.name, why));
    return resource;
  }

  static std::string WhyNotTogether(const Resource& resource) {
    const bool shared = resource.replicas > 1;
    if (shared && resource.vm) return "replicas and vm: virtual machines can't share a VF";
    if (shared && resource.dra) return "replicas and dra: a claim has its VFs for itself, and pods can share a claim";
    if (shared && resource.max_weight) return "replicas and max_weight: pods that share a VF have one weight";
    if (resource.dra && resource.vm) return "dra and vm: virtual machines get VFs by the name of a resource";
    if (!resource.dra && resource.max_slice_us) return "max_slice_us without dra: only claims can ask for a slice";
    return "";
  }

  struct NumberKey {
    std::string_view key;
    int most;
    void (*set)(Resource*, int);
  };
  static constexpr std::array<NumberKey, 6> kNumbers = {{
      {"count", kMostVfsOfResource, [](Resource* resource, int value) { resource->count = value; }},
      {"replicas", kMostReplicas, [](Resource* resource, int value) { resource->replicas = value; }},
      {"weight", kMostWeight, [](Resource* resource, int value) { resource->weight = value; }},
      {"max_weight", kMostWeight, [](Resource* resource, int value) { resource->max_weight = value; }},
      {"max_slice_us", kMostSliceUs, [](Resource* resource, int value) { resource->max_slice_us = value; }},
      {"user", kMostUser, [](Resource* resource, int value) { resource->user = value; }},
  }};

  TomlErrors& errors_;
  std::set<std::string> labels_;
};

}  // namespace

std::string Resource::VfName(int number) const { return fmt::format("{}{}-{}", kVfPrefix, label, number); }

Result<Config> ParseConfig(std::string_view text, const std::string& path) {
  TomlErrors errors(path);
  Result<Config> config;
  ReadToml(text, errors, [&](const toml::table& file) { config = Parser(errors).Parse(file); });
  if (!errors.empty()) return errors.Refuse();
  return config;
}

Result<Config> ReadConfig(const std::string& path) {
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return FailErrno(fmt::format("cannot open {}", path));
  std::string text(kMostBytes + 1, '\0');
  size_t used = 0;
  for (;;) {
    const ssize_t n = ::read(file.get(), text.data() + used, text.size() - used);
    if (n < 0) return FailErrno(fmt::format("cannot read {}", path));
    used += static_cast<size_t>(n);
    if (used > kMostBytes)
      return Fail(std::errc::file_too_large, fmt::format("{} has more than {} bytes", path, kMostBytes));
    if (n == 0) break;
  }
  text.resize(used);
  return ParseConfig(text, path);
}

}  // namespace vgpud::kubernetes
