// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/launch/launch_attributes.h"

#include <algorithm>
#include <cstring>

namespace vgpud::cuda {
namespace {

std::array<uint32_t, 3> Words(const AttributeValue& value) {
  std::array<uint32_t, 3> words;
  memcpy(words.data(), value.data(), sizeof words);
  return words;
}

bool Any(const AttributeValue&) { return true; }
bool OneBlock(const AttributeValue& value) {
  const auto size = Words(value);
  return size[0] <= 1 && size[1] <= 1 && size[2] <= 1;
}
bool Off(const AttributeValue& value) { return Words(value)[0] == 0; }

struct Row {
  int id;
  bool launches, nodes;
  bool (*possible)(const AttributeValue&);
  uint32_t initial;  // the first word of a node's, the rest is zero
};
constexpr Row kRows[] = {
    {CU_LAUNCH_ATTRIBUTE_IGNORE, true, false, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, true, true, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, true, true, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, true, false, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, true, true, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, true, true, Any, 0},
    // Waiting for the whole previous kernel is a correct way of programmatic stream serialization.
    {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, true, false, Any, 0},
    // Recorded when the kernel has ended, which cuda.h allows of both.
    {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, true, false, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, true, false, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_PRIORITY, true, true, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, true, true, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, true, true, Any, 0},
    {CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, true, true, OneBlock, 0},
    {CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, true, true, Off, 0},
    {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, true, true, Any,
     static_cast<uint32_t>(CU_SHAREDMEM_CARVEOUT_DEFAULT)},
    {CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, true, true, Any, 0},
};

const Row* RowOf(int id) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.id == id; });
  return row != std::end(kRows) ? row : nullptr;
}

}  // namespace

CUresult CheckAttribute(AttributeOf owner, int id, const AttributeValue& value) {
  const Row* const row = RowOf(id);
  if (owner == AttributeOf::kNode && (row == nullptr || !row->nodes)) return CUDA_ERROR_INVALID_VALUE;
  if (row == nullptr || (owner == AttributeOf::kLaunch && !row->launches)) return CUDA_ERROR_NOT_SUPPORTED;
  return row->possible(value) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

AttributeValue InitialAttribute(int id) {
  AttributeValue value{};
  if (const Row* const row = RowOf(id)) memcpy(value.data(), &row->initial, sizeof row->initial);
  return value;
}

bool IsCooperative(const LaunchAttributes& attributes) {
  const auto it = attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  return it != attributes.end() && Words(it->second)[0] != 0;
}

std::array<uint32_t, 3> ClusterOf(const LaunchAttributes& attributes) {
  const auto it = attributes.find(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (it == attributes.end()) return {};
  std::array<uint32_t, 3> cluster = Words(it->second);
  if (cluster != std::array<uint32_t, 3>{})
    for (uint32_t& extent : cluster) extent = std::max(extent, 1u);
  return cluster;
}

LaunchAttributes AsKept(const LaunchAttributes& attributes, bool cooperative) {
  LaunchAttributes kept;
  for (const auto& [id, value] : attributes)
    if (RowOf(id)->nodes) kept[id] = value;
  if (cooperative) kept[CU_LAUNCH_ATTRIBUTE_COOPERATIVE] = {1};
  return kept;
}

}  // namespace vgpud::cuda
