// SPDX-License-Identifier: Apache-2.0
// Calls for managed memory. What a program advises about ranges is kept, so that it can ask for it; nothing moves.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace {

using namespace vgpud::cuda;

constexpr int kCpu = -1;      // CU_DEVICE_CPU
constexpr int kNowhere = -2;  // CU_DEVICE_INVALID

struct Advice {
  CUdeviceptr end = 0;
  bool read_mostly = false;
  int preferred = kNowhere;
  int prefetched = kNowhere;
  std::set<int> accessed_by;
};
// Ranges that something was said of, by their first address; none overlap.
struct AllAdvice {
  Mutex mutex{lock_rank::kAdvice};
  std::map<CUdeviceptr, Advice> map GUARDED_BY(mutex);
};
AllAdvice& TheAdvice() {
  static auto* const advice = new AllAdvice;
  return *advice;
}

// No entry lies across `at` afterwards.
void SplitAt(std::map<CUdeviceptr, Advice>& map, CUdeviceptr at) {
  auto it = map.lower_bound(at);
  if (it == map.begin() || std::prev(it)->second.end <= at) return;
  Advice behind = (--it)->second;
  it->second.end = at;
  map[at] = std::move(behind);
}

// change(Advice&) for every byte of the range; what nothing was said of gets an entry.
template <class Change>
void Say(CUdeviceptr begin, uint64_t bytes, Change change) {
  AllAdvice& all = TheAdvice();
  MutexLock lock(all.mutex);
  const CUdeviceptr end = begin + bytes;
  SplitAt(all.map, begin);
  SplitAt(all.map, end);
  for (CUdeviceptr at = begin; at < end;) {
    const auto it = all.map.lower_bound(at);
    if (it == all.map.end() || it->first > at) {
      const CUdeviceptr until = it == all.map.end() ? end : std::min(end, it->first);
      all.map[at].end = until;
    }
    Advice& advice = all.map[at];
    change(advice);
    at = advice.end;
  }
}

// What holds for all of the range: its entries, and a fresh one when there is a gap.
std::map<CUdeviceptr, Advice> Told(CUdeviceptr begin, uint64_t bytes) {
  std::map<CUdeviceptr, Advice> told;
  Say(begin, bytes, [](Advice&) {});
  AllAdvice& all = TheAdvice();
  MutexLock lock(all.mutex);
  for (auto it = all.map.lower_bound(begin); it != all.map.end() && it->first < begin + bytes; ++it) told.insert(*it);
  return told;
}

// A location as the older calls number it; nullopt: there is none.
std::optional<int> Numbered(int id) {
  if (id == kCpu || Driver::Get().device(id) != nullptr) return id;
  return std::nullopt;
}
std::optional<int> Numbered(const CUmemLocation_st& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return Driver::Get().device(location.id) != nullptr ? std::optional(location.id) : std::nullopt;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return kCpu;
    default:
      return std::nullopt;
  }
}

CUresult Check(CUdeviceptr address, size_t bytes) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return bytes != 0 && IsManaged(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Advise(CUdeviceptr address, size_t bytes, int advice, std::optional<int> place) {
  if (const CUresult error = Check(address, bytes)) return error;
  const bool anywhere = advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                        advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (!place && !anywhere) return CUDA_ERROR_INVALID_DEVICE;
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      Say(address, bytes, [&](Advice& a) { a.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY; });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      Say(address, bytes,
          [&](Advice& a) { a.preferred = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ? *place : kNowhere; });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      Say(address, bytes, [&](Advice& a) { a.accessed_by.insert(*place); });
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      Say(address, bytes, [&](Advice& a) { a.accessed_by.erase(*place); });
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult PrefetchTo(CUdeviceptr address, size_t bytes, std::optional<int> place) {
  if (const CUresult error = Check(address, bytes)) return error;
  if (!place) return CUDA_ERROR_INVALID_DEVICE;
  Say(address, bytes, [&](Advice& a) { a.prefetched = *place; });
  return CUDA_SUCCESS;
}
CUresult Prefetch(DefaultStream, CUdeviceptr address, size_t bytes, int to, CUstream) {
  return PrefetchTo(address, bytes, Numbered(to));
}
CUresult PrefetchV2(DefaultStream, CUdeviceptr address, size_t bytes, CUmemLocation_st to, unsigned flags, CUstream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return PrefetchTo(address, bytes, Numbered(to));
}
CUresult Attach(DefaultStream, CUstream, CUdeviceptr address, size_t, unsigned) { return Check(address, 1); }

// The same for all of the range, or kNowhere.
int Common(const std::map<CUdeviceptr, Advice>& told, int Advice::*what) {
  const int first = told.begin()->second.*what;
  const auto same = [&](const auto& entry) { return entry.second.*what == first; };
  return std::all_of(told.begin(), told.end(), same) ? first : kNowhere;
}
int TypeOf(int place) {
  if (place == kNowhere) return CU_MEM_LOCATION_TYPE_INVALID;
  return place == kCpu ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult RangeAttribute(void* data, size_t data_bytes, int attribute, CUdeviceptr address, size_t bytes) {
  if (data == nullptr || data_bytes < sizeof(int) || data_bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool is_list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  if (!is_list && data_bytes != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Check(address, bytes)) return error;
  const auto told = Told(address, bytes);
  int* const out = static_cast<int*>(data);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      *out = std::all_of(told.begin(), told.end(), [](const auto& entry) { return entry.second.read_mostly; });
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      std::set<int> common = told.begin()->second.accessed_by;
      for (const auto& each : told)
        std::erase_if(common, [&](int place) { return !each.second.accessed_by.contains(place); });
      std::fill_n(out, data_bytes / sizeof(int), kNowhere);
      std::copy_n(common.begin(), std::min(common.size(), data_bytes / sizeof(int)), out);
      return CUDA_SUCCESS;
    }
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      *out = Common(told, &Advice::preferred);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      *out = Common(told, &Advice::prefetched);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      *out = TypeOf(Common(told, &Advice::preferred));
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      *out = TypeOf(Common(told, &Advice::prefetched));
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CU_API(cuMemAllocManaged)(CUdeviceptr* out, size_t bytes, unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  if (const CUresult error = AllocManaged(current, out, bytes)) return error;
  // What was said of memory that was there before is over.
  AllAdvice& all = TheAdvice();
  MutexLock lock(all.mutex);
  SplitAt(all.map, *out);
  SplitAt(all.map, *out + bytes);
  all.map.erase(all.map.lower_bound(*out), all.map.lower_bound(*out + bytes));
  return CUDA_SUCCESS;
}

CU_API(cuMemAdvise)(CUdeviceptr address, size_t bytes, int advice, CUdevice place) {
  return Advise(address, bytes, advice, Numbered(place));
}
CU_API(cuMemAdvise_v2)(CUdeviceptr address, size_t bytes, int advice, CUmemLocation_st place) {
  return Advise(address, bytes, advice, Numbered(place));
}
CU_API(cuMemRangeGetAttribute)
(void* data, size_t data_bytes, int attribute, CUdeviceptr address, size_t bytes) {
  return RangeAttribute(data, data_bytes, attribute, address, bytes);
}
CU_API(cuMemRangeGetAttributes)
(void** data, size_t* data_bytes, int* attributes, size_t count, CUdeviceptr address, size_t bytes) {
  if (data == nullptr || data_bytes == nullptr || attributes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (const CUresult error = RangeAttribute(data[i], data_bytes[i], attributes[i], address, bytes)) return error;
  return CUDA_SUCCESS;
}
CU_TWINS(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, Prefetch, (CUdeviceptr at, size_t n, CUdevice to, CUstream s),
         (at, n, to, s))
CU_TWINS(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz, PrefetchV2,
         (CUdeviceptr at, size_t n, CUmemLocation_st to, unsigned flags, CUstream s), (at, n, to, flags, s))
CU_TWINS(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz, Attach,
         (CUstream s, CUdeviceptr at, size_t n, unsigned flags), (s, at, n, flags))
