// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace vgpud::kubernetes {
namespace {

using Ids = std::set<std::string, std::less<>>;

Result<Ids> Checked(const std::vector<std::string>& given, const Ids& allowed, const char* what, const char* of) {
  Ids ids;
  for (const std::string& id : given) {
    if (!allowed.contains(id))
      return Fail(std::errc::invalid_argument, fmt::format("{} \"{}\" is none of {}", what, id, of));
    if (!ids.insert(id).second)
      return Fail(std::errc::invalid_argument, fmt::format("{} \"{}\" is there twice", what, id));
  }
  return ids;
}

}  // namespace

Result<std::vector<std::string>> Choose(const std::vector<Device>& devices, const Wish& wish) {
  Ids known;
  for (const Device& device : devices) known.insert(device.id);
  const Ids available = TRY(Checked(wish.available, known, "the available device", "the resource's"));
  const Ids musts = TRY(Checked(wish.must_include, available, "the wanted device", "the available ones"));
  if (wish.size < 0 || static_cast<size_t>(wish.size) > available.size() ||
      static_cast<size_t>(wish.size) < musts.size())
    return Fail(std::errc::invalid_argument,
                fmt::format("{} devices of {} available ones, {} of them wanted, can't be chosen", wish.size,
                            available.size(), musts.size()));
  std::vector<std::string> chosen;
  std::map<std::string, int> of_vf, of_gpu, sharing;
  std::vector<const Device*> left;
  const auto take = [&](const Device& device) {
    chosen.push_back(device.id);
    ++of_vf[device.vf];
    ++of_gpu[device.gpu];
  };
  for (const Device& device : devices) {
    if (!available.contains(device.id)) ++sharing[device.vf];
    if (musts.contains(device.id))
      take(device);
    else if (available.contains(device.id))
      left.push_back(&device);
  }
  while (chosen.size() < static_cast<size_t>(wish.size)) {
    const auto cost = [&](const Device* device) {
      return std::tuple(!device->healthy, of_vf[device->vf], of_gpu[device->gpu], sharing[device->vf]);
    };
    const auto best =
        std::min_element(left.begin(), left.end(), [&](const Device* a, const Device* b) { return cost(a) < cost(b); });
    take(**best);
    left.erase(best);
  }
  return chosen;
}

}  // namespace vgpud::kubernetes
