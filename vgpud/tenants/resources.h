// SPDX-License-Identifier: Apache-2.0
// Everything that a VF costs its host or may ask for, each one row: from here come the keys of quotas, what answers
// list, and what is checked. A resource without a row does not compile, nor a setting of VFs that no row bounds. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/registry.h"

namespace vgpud::daemon {

enum class Resource : uint8_t {
  kVfs,
  kVram,
  kHostMemory,
  kRam,
  kWeight,
  kGuarantee,
  kPriority,
  kSlice,
  kGroup,
  kLimit,
  kBurst,
  kWakeFirst,
  kThreads,
  kChannels,
  kDescriptors,
  kDisk,
  kLog,
};
inline constexpr size_t kResources = static_cast<size_t>(Resource::kLog) + 1;

// One value for each.
template <class T>
class PerResource {
 public:
  T& operator[](Resource resource) { return values_[static_cast<size_t>(resource)]; }
  const T& operator[](Resource resource) const { return values_[static_cast<size_t>(resource)]; }
  bool operator==(const PerResource&) const = default;

 private:
  std::array<T, kResources> values_{};
};
using Amounts = PerResource<uint64_t>;
using Limits = PerResource<std::optional<uint64_t>>;  // nothing: no limit

enum class ResourceUnit : uint8_t { kNumber, kBytes, kPart, kMicroseconds };

struct ResourceRow {
  Resource resource;
  std::string_view key;    // of quotas; with kEachSuffix: of each VF, where `together` is so
  std::string_view field;  // of requests and answers
  ResourceUnit unit;
  bool together;             // what VFs have adds up; else each has its own
  std::optional<Knob> knob;  // that it is
  uint64_t most;             // that a quota of what adds up can say
  std::string_view about;
};
inline constexpr std::string_view kEachSuffix = "_each";

constexpr uint64_t kMostBytesOfQuota = uint64_t{1} << 50;
constexpr uint64_t kMostOfQuota = 1'000'000'000;  // more than all VFs can have together
constexpr uint64_t kMostGpusOfQuota = 64;
// clang-format off
inline constexpr std::array<ResourceRow, kResources> kResourceRows = {{
    {Resource::kVfs, "vfs", "vfs", ResourceUnit::kNumber, true, {}, 1024, "VFs"},
    {Resource::kVram, "vram", "vram_bytes", ResourceUnit::kBytes, true, {}, kMostBytesOfQuota, "memory on the GPU"},
    {Resource::kHostMemory, "host_memory", "host_memory_bytes", ResourceUnit::kBytes, true, {}, kMostBytesOfQuota,
     "memory of the host beside VRAM; without it so much as goes with `vram`"},
    {Resource::kRam, "ram", "ram_bytes", ResourceUnit::kBytes, true, {}, kMostBytesOfQuota,
     "memory of the host in all: `host_memory`, and `vram` on the soft GPU"},
    {Resource::kWeight, "weight", "weight", ResourceUnit::kNumber, true, Knob::kWeight, kMostOfQuota,
     "weight; a VF has 100 unless it is told otherwise"},
    {Resource::kGuarantee, "guarantee", "guarantee", ResourceUnit::kPart, true, Knob::kGuarantee,
     kMostGpusOfQuota * kWhole, "guaranteed parts of GPUs: \"150%\" is one and a half"},
    {Resource::kPriority, "priority", "priority", ResourceUnit::kNumber, false, Knob::kPriority, 0,
     "class, and place among new VFs that wait for room"},
    {Resource::kSlice, "slice_us", "slice_us", ResourceUnit::kMicroseconds, false, Knob::kSlice, 0,
     "slice of its own; \"none\": by weight only, as where weights are limited"},
    {Resource::kGroup, "group", "group", ResourceUnit::kNumber, false, Knob::kGroup, 0,
     "number of a group; \"none\": in no group, as where weights are limited"},
    {Resource::kLimit, "limit", "limit", ResourceUnit::kPart, false, Knob::kLimit, 0,
     "part of the GPU that it may reach: its own limit has to be so low"},
    {Resource::kBurst, "burst_us", "burst_us", ResourceUnit::kMicroseconds, false, Knob::kBurst, 0,
     "time that it may save up under its limit"},
    {Resource::kWakeFirst, "wake_first", "wake_first", ResourceUnit::kNumber, false, Knob::kWakeFirst, 0,
     "0: none has its slice early after sleep"},
    {Resource::kThreads, "threads", "threads", ResourceUnit::kNumber, true, {}, kMostOfQuota,
     "processes and threads, as many as its control group lets it have"},
    {Resource::kChannels, "channels", "channels", ResourceUnit::kNumber, true, {}, kMostOfQuota,
     "programs at the same time"},
    {Resource::kDescriptors, "descriptors", "descriptors", ResourceUnit::kNumber, true, {}, kMostOfQuota,
     "open files of its processes"},
    {Resource::kDisk, "disk", "disk_bytes", ResourceUnit::kBytes, true, {}, kMostBytesOfQuota,
     "its definition in the state directory"},
    {Resource::kLog, "log", "log_bytes", ResourceUnit::kBytes, true, {}, kMostBytesOfQuota,
     "bytes a second that its processes may write into the log"},
}};
// clang-format on
static_assert(
    [] {
      for (size_t i = 0; i < kResources; ++i)
        if (kResourceRows[i].resource != static_cast<Resource>(i) || kResourceRows[i].key.empty()) return false;
      return true;
    }(),
    "each resource has its row, in the order of Resource");
static_assert(
    [] {
      for (size_t knob = 0; knob < static_cast<size_t>(Knob::kBaseSlice); ++knob) {  // those of VFs come first
        size_t rows = 0;
        for (const ResourceRow& row : kResourceRows) rows += row.knob == static_cast<Knob>(knob) ? 1 : 0;
        if (rows != 1) return false;
      }
      return true;
    }(),
    "each setting of a VF is a resource");

constexpr const ResourceRow& RowOf(Resource resource) { return kResourceRows[static_cast<size_t>(resource)]; }

// What the knobs of `vf` are as resources; the others are 0. No group is 0, group 0 is 1, and so on.
Amounts KnobAmounts(const VfView& vf);
// As people write a quota, of VFs together or of each: "8GiB", "150%", "2"; "none" for 0 where a VF can be without it.
[[nodiscard]] Result<uint64_t> ParseAmount(const ResourceRow& row, bool each, std::string_view text);
// As people read it.
std::string ShowAmount(const ResourceRow& row, uint64_t amount);

}  // namespace vgpud::daemon
