// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/api/array.h"

#include <algorithm>

#include "guest-driver-shim/libcuda/driver/allocations.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kRowAlignment = 16;
// Levels begin at what textures must be aligned to.
constexpr uint64_t kLevelAlignment = 512;
constexpr unsigned kMaxLevels = VGPU_TEXTURE_MAX_LEVELS;
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;

HandleTable<CUarray, Array>& Arrays() {
  static auto* const table = new HandleTable<CUarray, Array>(0xa1);
  return *table;
}
HandleTable<CUmipmappedArray, MipmappedArray>& MipmappedArrays() {
  static auto* const table = new HandleTable<CUmipmappedArray, MipmappedArray>(0xa2);
  return *table;
}

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// The device attributes that bound width, height and depth or layers of each kind of array.
struct Limits {
  int width, height, depth;
};
Limits LimitsOf(const CUDA_ARRAY3D_DESCRIPTOR_st& d) {
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
    if (layered)
      return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
              CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
              CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS};
    return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS};
  }
  if (layered && d.Height == 0)
    return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 0,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS};
  if (layered)
    return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS};
  if (d.Depth != 0)
    return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH};
  if (d.Height != 0)
    return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 0};
  return {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 0, 0};
}

CUresult Check(const Device& device, const CUDA_ARRAY3D_DESCRIPTOR_st& d) {
  if ((d.Flags & ~kKnownFlags) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (BytesOfFormat(d.Format) == 0) return d.Format > 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4) return CUDA_ERROR_INVALID_VALUE;
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
    if (d.Width != d.Height || d.Depth == 0 || d.Depth % 6 != 0 || (!layered && d.Depth != 6))
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (d.Width == 0 || (layered && d.Depth == 0) || (d.Depth != 0 && d.Height == 0 && !layered))
    return CUDA_ERROR_INVALID_VALUE;
  const Limits limits = LimitsOf(d);
  const auto within = [&](size_t extent, int attribute) {
    return extent == 0 || (attribute != 0 && extent <= static_cast<size_t>(std::max(device.attribute(attribute), 0)));
  };
  return within(d.Width, limits.width) && within(d.Height, limits.height) && within(d.Depth, limits.depth)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

std::shared_ptr<Array> LayOut(const Current& current, const CUDA_ARRAY3D_DESCRIPTOR_st& desc) {
  auto array = std::make_shared<Array>();
  array->device = current.device;
  array->context = current.context.get();
  array->epoch = current.device->epoch.load();
  array->desc = desc;
  array->texel_bytes = BytesOfFormat(desc.Format) * desc.NumChannels;
  array->row_bytes = desc.Width * array->texel_bytes;
  array->rows = std::max<uint64_t>(desc.Height, 1);
  array->slices = std::max<uint64_t>(desc.Depth, 1);
  array->pitch = RoundUp(array->row_bytes, kRowAlignment);
  array->slice = array->pitch * array->rows;
  return array;
}

void FreeMemory(const Current& current, CUdeviceptr address) {
  {
    MutexLock lock(current.device->mutex);
    current.device->allocations.erase(address);
  }
  Command command;
  command.op = VGPU_OP_MEM_FREE;
  command.args[0] = address;
  current.channel->Call(command);
}

CUresult Create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_st* desc) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || desc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Check(*current.device, *desc)) return error;
  const auto array = LayOut(current, *desc);
  if (const CUresult error = AllocDevice(current, &array->address, array->slice * array->slices)) return error;
  *out = Arrays().Add(array);
  return CUDA_SUCCESS;
}

CUresult CreateMipmapped(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR_st* desc, unsigned levels) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || desc == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Check(*current.device, *desc)) return error;
  const bool deep = (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  unsigned most = 0;
  for (size_t longest = std::max({desc->Width, desc->Height, deep ? desc->Depth : 0}); longest != 0; longest /= 2)
    ++most;
  auto mipmapped = std::make_shared<MipmappedArray>();
  mipmapped->desc = *desc;
  uint64_t bytes = 0;
  for (unsigned n = 0; n < std::min({levels, most, kMaxLevels}); ++n) {
    CUDA_ARRAY3D_DESCRIPTOR_st of_level = *desc;
    const auto halve = [n](size_t extent) { return extent == 0 ? 0 : std::max<size_t>(extent >> n, 1); };
    of_level.Width = halve(desc->Width);
    of_level.Height = halve(desc->Height);
    if (deep) of_level.Depth = halve(desc->Depth);
    const auto level = LayOut(current, of_level);
    level->is_level = true;
    level->address = bytes;
    bytes += RoundUp(level->slice * level->slices, kLevelAlignment);
    mipmapped->levels.push_back(level);
  }
  if (const CUresult error = AllocDevice(current, &mipmapped->address, bytes)) return error;
  for (const auto& level : mipmapped->levels) {
    level->address += mipmapped->address;
    mipmapped->handles.push_back(Arrays().Add(level));
  }
  *out = MipmappedArrays().Add(mipmapped);
  return CUDA_SUCCESS;
}

CUresult Requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS_st* out, uint64_t bytes) {
  *out = {};
  out->size = bytes;
  out->alignment = kLevelAlignment;
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t BytesOfFormat(int format) {
  constexpr struct {
    int format;
    uint64_t bytes;
  } kFormats[] = {
      {CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_SIGNED_INT8, 1},    {CU_AD_FORMAT_UNSIGNED_INT16, 2},
      {CU_AD_FORMAT_SIGNED_INT16, 2},  {CU_AD_FORMAT_UNSIGNED_INT32, 4}, {CU_AD_FORMAT_SIGNED_INT32, 4},
      {CU_AD_FORMAT_HALF, 2},          {CU_AD_FORMAT_FLOAT, 4},
  };
  for (const auto& row : kFormats)
    if (row.format == format) return row.bytes;
  return 0;
}

std::shared_ptr<Array> FindArray(CUarray handle) {
  auto array = Arrays().Find(handle);
  return array != nullptr && array->epoch == array->device->epoch.load() ? array : nullptr;
}

std::shared_ptr<MipmappedArray> FindMipmappedArray(CUmipmappedArray handle) {
  auto array = MipmappedArrays().Find(handle);
  return array != nullptr && array->levels[0]->epoch == array->levels[0]->device->epoch.load() ? array : nullptr;
}

void DropArraysOf(const Context* context) {
  Arrays().RemoveIf([&](const Array& array) { return array.context == context; });
  MipmappedArrays().RemoveIf([&](const MipmappedArray& array) { return array.levels[0]->context == context; });
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuArray3DCreate_v2)(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_st* desc) { return Create(out, desc); }
CU_API(cuArrayCreate_v2)(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_st* desc) {
  if (desc == nullptr) return Create(out, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR_st full{desc->Width, desc->Height, 0, desc->Format, desc->NumChannels, 0};
  return Create(out, &full);
}

CU_API(cuArrayDestroy)(CUarray handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindArray(handle);
  if (array == nullptr || array->is_level) return CUDA_ERROR_INVALID_HANDLE;
  const Current current = PrimaryOf(array->device);
  if (current.error != CUDA_SUCCESS) return current.error;
  Arrays().Remove(handle);
  FreeMemory(current, array->address);
  return CUDA_SUCCESS;
}

CU_API(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR_st* out, CUarray handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = array->desc;
  return CUDA_SUCCESS;
}
CU_API(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR_st* out, CUarray handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = {array->desc.Width, array->desc.Height, array->desc.Format, array->desc.NumChannels};
  return CUDA_SUCCESS;
}
CU_API(cuArrayGetMemoryRequirements)(CUDA_ARRAY_MEMORY_REQUIREMENTS_st* out, CUarray handle, CUdevice) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Requirements(out, array->slice * array->slices);
}

CU_API(cuMipmappedArrayCreate)(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR_st* desc, unsigned levels) {
  return CreateMipmapped(out, desc, levels);
}
CU_API(cuMipmappedArrayGetLevel)(CUarray* out, CUmipmappedArray handle, unsigned level) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindMipmappedArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || level >= array->handles.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = array->handles[level];
  return CUDA_SUCCESS;
}
CU_API(cuMipmappedArrayDestroy)(CUmipmappedArray handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindMipmappedArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Current current = PrimaryOf(array->levels[0]->device);
  if (current.error != CUDA_SUCCESS) return current.error;
  MipmappedArrays().Remove(handle);
  for (const CUarray level : array->handles) Arrays().Remove(level);
  FreeMemory(current, array->address);
  return CUDA_SUCCESS;
}
CU_API(cuMipmappedArrayGetMemoryRequirements)
(CUDA_ARRAY_MEMORY_REQUIREMENTS_st* out, CUmipmappedArray handle, CUdevice) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto array = FindMipmappedArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array& last = *array->levels.back();
  return Requirements(out, last.address - array->address + RoundUp(last.slice * last.slices, kLevelAlignment));
}
