// SPDX-License-Identifier: Apache-2.0
// Copies of rows and slices. An array is device memory with its own pitch, so every such copy becomes plain ones, as
// few as the layouts on both sides allow.
#include <algorithm>

#include "guest-driver-shim/libcuda/api/array.h"
#include "guest-driver-shim/libcuda/api/copy.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

namespace vgpud::cuda {
namespace {

// One side: its first byte, and how far rows and slices are apart.
struct End {
  CUdeviceptr first = 0;
  uint64_t pitch = 0;
  uint64_t slice = 0;
};

struct Extent {
  size_t width_bytes, height, depth;
};

// What CUDA_MEMCPY3D says about one side.
struct Side {
  size_t x, y, z, lod;
  int type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t pitch, height;
};

bool Within(size_t begin, size_t count, uint64_t end) { return begin <= end && count <= end - begin; }

// From the first byte to the last one, all rows and slices; false when there are not so many addresses.
bool Span(const End& end, const Extent& extent, uint64_t* bytes) {
  uint64_t slices, rows, last;
  return !__builtin_mul_overflow(end.slice, extent.depth - 1, &slices) &&
         !__builtin_mul_overflow(end.pitch, extent.height - 1, &rows) && !__builtin_add_overflow(slices, rows, bytes) &&
         !__builtin_add_overflow(*bytes, extent.width_bytes, bytes) &&
         !__builtin_add_overflow(end.first, *bytes, &last);
}

// Does all of a side lie in memory of the kind that it is said to be? Later on every row is taken for what its own
// address says.
bool IsWhole(Device* device, int type, const End& end, const Extent& extent) {
  uint64_t bytes;
  if (!Span(end, extent, &bytes)) return false;
  const bool on_device = IsDeviceRange(device, end.first, 1);
  if (type == CU_MEMORYTYPE_HOST && on_device && !IsManaged(end.first)) return false;
  if (type == CU_MEMORYTYPE_DEVICE || on_device) return IsDeviceRange(device, end.first, bytes);
  return IsHostMemory(reinterpret_cast<const void*>(end.first), bytes);
}

CUresult Resolve(const Place& place, const Side& side, const Extent& extent, End* end) {
  if (side.lod != 0) return CUDA_ERROR_INVALID_VALUE;
  if (side.type == CU_MEMORYTYPE_ARRAY) {
    const auto array = FindArray(side.array);
    if (array == nullptr || array->device != place.current.device) return CUDA_ERROR_INVALID_HANDLE;
    if (!Within(side.x, extent.width_bytes, array->row_bytes) || !Within(side.y, extent.height, array->rows) ||
        !Within(side.z, extent.depth, array->slices)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *end = {array->address + side.x + side.y * array->pitch + side.z * array->slice, array->pitch, array->slice};
    return CUDA_SUCCESS;
  }
  if (side.type == CU_MEMORYTYPE_HOST) {
    end->first = reinterpret_cast<CUdeviceptr>(side.host);
  } else if (side.type == CU_MEMORYTYPE_DEVICE || side.type == CU_MEMORYTYPE_UNIFIED) {
    end->first = side.device;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (side.pitch != 0 && extent.height > 1 && !Within(side.x, extent.width_bytes, side.pitch))
    return CUDA_ERROR_INVALID_VALUE;
  end->pitch = side.pitch != 0 ? side.pitch : extent.width_bytes;
  size_t rows, offset, part;
  const size_t height = side.height != 0 ? side.height : extent.height;
  if (__builtin_mul_overflow(end->pitch, height, &end->slice) || __builtin_mul_overflow(side.z, height, &rows) ||
      __builtin_add_overflow(rows, side.y, &rows) || __builtin_mul_overflow(rows, end->pitch, &part) ||
      __builtin_add_overflow(part, side.x, &offset)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (__builtin_add_overflow(end->first, offset, &end->first)) return CUDA_ERROR_INVALID_VALUE;
  return IsWhole(place.current.device, side.type, *end, extent) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// From one piece of an array to the next where a copy by bytes goes on: `offset` counts the bytes of all rows.
CUresult CopyLinear(const Place& place, CUarray array_handle, size_t offset, CUdeviceptr other, size_t bytes,
                    bool to_array, Finish finish) {
  if (place.error != CUDA_SUCCESS) return place.error;
  const auto array = FindArray(array_handle);
  if (array == nullptr || array->device != place.current.device) return CUDA_ERROR_INVALID_HANDLE;
  if (!Within(offset, bytes, array->row_bytes * array->rows)) return CUDA_ERROR_INVALID_VALUE;
  while (bytes != 0) {
    const uint64_t x = offset % array->row_bytes;
    const size_t n = std::min<uint64_t>(bytes, array->pitch == array->row_bytes ? bytes : array->row_bytes - x);
    const CUdeviceptr at = array->address + offset / array->row_bytes * array->pitch + x;
    bytes -= n;
    const Finish how = bytes == 0 ? finish : Finish::kLater;
    if (const CUresult error = CopyAnywhere(place, to_array ? at : other, to_array ? other : at, n, how)) return error;
    offset += n;
    other += n;
  }
  return CUDA_SUCCESS;
}

CUdeviceptr AddressOf(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

CUresult HtoA(DefaultStream m, CUarray to, size_t offset, const void* from, size_t n) {
  return CopyLinear(Where(m, nullptr), to, offset, AddressOf(from), n, true, Finish::kWait);
}
CUresult AtoH(DefaultStream m, void* to, CUarray from, size_t offset, size_t n) {
  return CopyLinear(Where(m, nullptr), from, offset, AddressOf(to), n, false, Finish::kWait);
}
CUresult DtoA(DefaultStream m, CUarray to, size_t offset, CUdeviceptr from, size_t n) {
  return CopyLinear(Where(m, nullptr), to, offset, from, n, true, Finish::kWait);
}
CUresult AtoD(DefaultStream m, CUdeviceptr to, CUarray from, size_t offset, size_t n) {
  return CopyLinear(Where(m, nullptr), from, offset, to, n, false, Finish::kWait);
}
CUresult HtoALater(DefaultStream m, CUarray to, size_t offset, const void* from, size_t n, CUstream s) {
  return CopyLinear(Where(m, s), to, offset, AddressOf(from), n, true, Finish::kLater);
}
CUresult AtoHLater(DefaultStream m, void* to, CUarray from, size_t offset, size_t n, CUstream s) {
  return CopyLinear(Where(m, s), from, offset, AddressOf(to), n, false, Finish::kLater);
}
CUresult AtoA(DefaultStream m, CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t n) {
  const Place place = Where(m, nullptr);
  if (place.error != CUDA_SUCCESS) return place.error;
  const auto source = FindArray(from);
  if (source == nullptr || source->device != place.current.device) return CUDA_ERROR_INVALID_HANDLE;
  if (!Within(from_offset, n, source->row_bytes * source->rows)) return CUDA_ERROR_INVALID_VALUE;
  while (n != 0) {
    const uint64_t x = from_offset % source->row_bytes;
    const size_t part = std::min<uint64_t>(n, source->row_bytes - x);
    const CUdeviceptr at = source->address + from_offset / source->row_bytes * source->pitch + x;
    if (const CUresult error = CopyLinear(place, to, to_offset, at, part, true, Finish::kLater)) return error;
    from_offset += part;
    to_offset += part;
    n -= part;
  }
  return CUDA_SUCCESS;
}

CUresult Copy2D(const Place& place, const CUDA_MEMCPY2D_st* c, Finish finish) {
  if (place.error != CUDA_SUCCESS) return place.error;
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D_st full{};
  full.srcXInBytes = c->srcXInBytes;
  full.srcY = c->srcY;
  full.srcMemoryType = c->srcMemoryType;
  full.srcHost = c->srcHost;
  full.srcDevice = c->srcDevice;
  full.srcArray = c->srcArray;
  full.srcPitch = c->srcPitch;
  full.dstXInBytes = c->dstXInBytes;
  full.dstY = c->dstY;
  full.dstMemoryType = c->dstMemoryType;
  full.dstHost = c->dstHost;
  full.dstDevice = c->dstDevice;
  full.dstArray = c->dstArray;
  full.dstPitch = c->dstPitch;
  full.WidthInBytes = c->WidthInBytes;
  full.Height = c->Height;
  full.Depth = 1;
  return Copy3D(place, full, finish);
}
CUresult Copy2DNow(DefaultStream m, const CUDA_MEMCPY2D_st* c) { return Copy2D(Where(m, nullptr), c, Finish::kWait); }
CUresult Copy2DLater(DefaultStream m, const CUDA_MEMCPY2D_st* c, CUstream s) {
  return Copy2D(Where(m, s), c, Finish::kLater);
}
CUresult Copy3DNow(DefaultStream m, const CUDA_MEMCPY3D_st* c) {
  const Place place = Where(m, nullptr);
  if (place.error != CUDA_SUCCESS) return place.error;
  return c == nullptr ? CUDA_ERROR_INVALID_VALUE : Copy3D(place, *c, Finish::kWait);
}
CUresult Copy3DLater(DefaultStream m, const CUDA_MEMCPY3D_st* c, CUstream s) {
  const Place place = Where(m, s);
  if (place.error != CUDA_SUCCESS) return place.error;
  return c == nullptr ? CUDA_ERROR_INVALID_VALUE : Copy3D(place, *c, Finish::kLater);
}

}  // namespace

CUresult Copy3D(const Place& place, const CUDA_MEMCPY3D_st& c, Finish finish) {
  Extent extent{c.WidthInBytes, c.Height, c.Depth};
  if (extent.width_bytes == 0 || extent.height == 0 || extent.depth == 0) return CUDA_SUCCESS;
  End from, to;
  const Side source{c.srcXInBytes, c.srcY,      c.srcZ,     c.srcLOD,   c.srcMemoryType,
                    c.srcHost,     c.srcDevice, c.srcArray, c.srcPitch, c.srcHeight};
  const Side destination{c.dstXInBytes, c.dstY,      c.dstZ,     c.dstLOD,   c.dstMemoryType,
                         c.dstHost,     c.dstDevice, c.dstArray, c.dstPitch, c.dstHeight};
  if (const CUresult error = Resolve(place, source, extent, &from)) return error;
  if (const CUresult error = Resolve(place, destination, extent, &to)) return error;
  if (finish == Finish::kLater) {
    if (const InCapture capture = Capturing(place.current, place.stream)) {
      return capture.error() != CUDA_SUCCESS ? capture.error()
                                             : capture.Add(place.current, CU_GRAPH_NODE_TYPE_MEMCPY, CopyWork(c));
    }
  }
  // Rows that follow each other on both sides are one; so are slices.
  const auto adjoin = [&](uint64_t End::*step, size_t& count) {
    if (count > 1 && (from.*step != extent.width_bytes || to.*step != extent.width_bytes)) return false;
    extent.width_bytes *= count;
    count = 1;
    return true;
  };
  if (adjoin(&End::pitch, extent.height)) adjoin(&End::slice, extent.depth);
  for (size_t z = 0; z < extent.depth; ++z) {
    for (size_t y = 0; y < extent.height; ++y) {
      const bool last = z + 1 == extent.depth && y + 1 == extent.height;
      const CUresult error =
          CopyAnywhere(place, to.first + z * to.slice + y * to.pitch, from.first + z * from.slice + y * from.pitch,
                       extent.width_bytes, last ? finish : Finish::kLater);
      if (error != CUDA_SUCCESS) return error;
    }
  }
  return CUDA_SUCCESS;
}

NodeWork CopyWork(const CUDA_MEMCPY3D_st& copy) {
  return {[copy](const Current& at, uint32_t stream) {
            return Copy3D({at, stream, CUDA_SUCCESS}, copy, Finish::kLater);
          },
          copy};
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_TWINS(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, Copy2DNow, (const CUDA_MEMCPY2D_st* c), (c))
CU_TWINS(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, Copy2DNow, (const CUDA_MEMCPY2D_st* c), (c))
CU_TWINS(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, Copy2DLater, (const CUDA_MEMCPY2D_st* c, CUstream s), (c, s))
CU_TWINS(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, Copy3DNow, (const CUDA_MEMCPY3D_st* c), (c))
CU_TWINS(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, Copy3DLater, (const CUDA_MEMCPY3D_st* c, CUstream s), (c, s))
CU_TWINS(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, HtoA, (CUarray to, size_t at, const void* from, size_t n),
         (to, at, from, n))
CU_TWINS(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, AtoH, (void* to, CUarray from, size_t at, size_t n), (to, from, at, n))
CU_TWINS(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, DtoA, (CUarray to, size_t at, CUdeviceptr from, size_t n),
         (to, at, from, n))
CU_TWINS(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, AtoD, (CUdeviceptr to, CUarray from, size_t at, size_t n),
         (to, from, at, n))
CU_TWINS(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, AtoA, (CUarray to, size_t at, CUarray from, size_t from_at, size_t n),
         (to, at, from, from_at, n))
CU_TWINS(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz, HtoALater,
         (CUarray to, size_t at, const void* from, size_t n, CUstream s), (to, at, from, n, s))
CU_TWINS(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz, AtoHLater,
         (void* to, CUarray from, size_t at, size_t n, CUstream s), (to, from, at, n, s))
