// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects. The descriptor lives in the executor, which checks it against the memory of this
// channel; its handle there is the program's handle. What programs ask back is kept here.
#include <algorithm>
#include <cstring>

#include "guest-driver-shim/libcuda/api/array.h"

namespace vgpud::cuda {
namespace {

struct Object {
  Device* device = nullptr;
  Context* context = nullptr;
  uint64_t epoch = 0;
  bool surface = false;
  CUDA_RESOURCE_DESC_st resource{};
  CUDA_TEXTURE_DESC_st texture{};
  CUDA_RESOURCE_VIEW_DESC_st view{};
  bool has_view = false;
};
struct Objects {
  Mutex mutex{lock_rank::kTextures};
  std::map<std::pair<Device*, uint64_t>, Object> map GUARDED_BY(mutex);  // by handle
};
Objects& TheObjects() {
  static auto* const objects = new Objects;
  return *objects;
}

struct Wire {
  vgpu_texture texture{};
  std::vector<vgpu_texture_level> levels;
};

uint32_t BitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

CUresult SetFormat(Wire* wire, int format, unsigned channels) {
  if (BytesOfFormat(format) == 0) return CUDA_ERROR_INVALID_VALUE;
  wire->texture.format = static_cast<uint32_t>(format);
  wire->texture.channels = channels;
  return CUDA_SUCCESS;
}

CUresult OfArrays(Wire* wire, const std::vector<std::shared_ptr<Array>>& levels) {
  const Array& first = *levels[0];
  vgpu_texture& t = wire->texture;
  t.shape = first.cube()                               ? VGPU_TEXTURE_CUBE
            : first.desc.Height == 0                   ? VGPU_TEXTURE_1D
            : first.layered() || first.desc.Depth == 0 ? VGPU_TEXTURE_2D
                                                       : VGPU_TEXTURE_3D;
  if (first.layered()) t.flags |= VGPU_TEXTURE_LAYERED;
  t.width = static_cast<uint32_t>(first.desc.Width);
  t.height = static_cast<uint32_t>(first.rows);
  const auto slices = static_cast<uint32_t>(first.slices);
  (t.shape == VGPU_TEXTURE_3D ? t.depth : t.layers) = slices;
  for (const auto& level : levels) wire->levels.push_back({level->address, level->pitch, level->slice});
  return SetFormat(wire, first.desc.Format, first.desc.NumChannels);
}

CUresult OfResource(const Device* device, const CUDA_RESOURCE_DESC_st& resource, Wire* wire) {
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  vgpu_texture& t = wire->texture;
  t.depth = t.layers = t.height = 1;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const auto array = FindArray(resource.res.array.hArray);
      if (array == nullptr || array->device != device) return CUDA_ERROR_INVALID_HANDLE;
      return OfArrays(wire, {array});
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const auto array = FindMipmappedArray(resource.res.mipmap.hMipmappedArray);
      if (array == nullptr || array->levels[0]->device != device) return CUDA_ERROR_INVALID_HANDLE;
      return OfArrays(wire, array->levels);
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      const uint64_t texel = BytesOfFormat(linear.format) * linear.numChannels;
      if (texel == 0 || linear.sizeInBytes / texel > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
      t.shape = VGPU_TEXTURE_BUFFER;
      t.width = static_cast<uint32_t>(linear.sizeInBytes / texel);
      wire->levels.push_back({linear.devPtr, 0, 0});
      return SetFormat(wire, linear.format, linear.numChannels);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& rows = resource.res.pitch2D;
      if (rows.width > UINT32_MAX || rows.height > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
      t.shape = VGPU_TEXTURE_2D;
      t.width = static_cast<uint32_t>(rows.width);
      t.height = static_cast<uint32_t>(rows.height);
      wire->levels.push_back({rows.devPtr, rows.pitchInBytes, 0});
      return SetFormat(wire, rows.format, rows.numChannels);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ApplySampling(const CUDA_TEXTURE_DESC_st& desc, Wire* wire) {
  constexpr unsigned kKnown = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                              CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
  if ((desc.flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  vgpu_texture& t = wire->texture;
  const bool buffer = t.shape == VGPU_TEXTURE_BUFFER;
  const auto flag = [&](bool on, uint32_t bit) { t.flags |= on ? bit : 0; };
  flag((desc.flags & CU_TRSF_READ_AS_INTEGER) == 0, VGPU_TEXTURE_READ_FLOAT);
  flag((desc.flags & CU_TRSF_SRGB) != 0, VGPU_TEXTURE_SRGB);
  // Linear memory is read by index: nothing else applies.
  flag(!buffer && (desc.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0, VGPU_TEXTURE_NORMALIZED);
  flag(!buffer && desc.filterMode == CU_TR_FILTER_MODE_LINEAR, VGPU_TEXTURE_LINEAR);
  flag(!buffer && desc.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR, VGPU_TEXTURE_MIP_LINEAR);
  for (int a = 0; a < 3; ++a) {
    if (desc.addressMode[a] < 0 || desc.addressMode[a] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    t.address[a] = static_cast<uint32_t>(desc.addressMode[a]);
  }
  t.lod_bias = BitsOf(desc.mipmapLevelBias);
  t.lod_min = BitsOf(desc.minMipmapLevelClamp);
  t.lod_max = BitsOf(desc.maxMipmapLevelClamp);
  for (int c = 0; c < 4; ++c) t.border[c] = BitsOf(desc.borderColor[c]);
  return CUDA_SUCCESS;
}

// CUresourceViewFormat: three channel counts of each of eight formats, in this order.
constexpr int kViewFormats[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,    CU_AD_FORMAT_UNSIGNED_INT16,
                                CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
                                CU_AD_FORMAT_HALF,          CU_AD_FORMAT_FLOAT};
static_assert(CU_RES_VIEW_FORMAT_FLOAT_4X32 == 3 * std::size(kViewFormats));

// A part of an array's levels and layers, its texels read as another format of the same size.
CUresult ApplyView(const CUDA_RESOURCE_VIEW_DESC_st& view, Wire* wire) {
  vgpu_texture& t = wire->texture;
  if (t.shape == VGPU_TEXTURE_BUFFER) return CUDA_ERROR_INVALID_VALUE;
  if (view.format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return CUDA_ERROR_NOT_SUPPORTED;
  if (view.format != CU_RES_VIEW_FORMAT_NONE) {
    const int index = view.format - 1;
    if (index < 0) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t before = BytesOfFormat(static_cast<int>(t.format)) * t.channels;
    if (const CUresult error = SetFormat(wire, kViewFormats[index / 3], 1u << (index % 3))) return error;
    if (BytesOfFormat(static_cast<int>(t.format)) * t.channels != before) return CUDA_ERROR_INVALID_VALUE;
  }
  if (view.firstMipmapLevel > view.lastMipmapLevel || view.lastMipmapLevel >= wire->levels.size() ||
      view.firstLayer > view.lastLayer || view.lastLayer >= t.layers) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const unsigned first = view.firstMipmapLevel;
  wire->levels = {wire->levels.begin() + first, wire->levels.begin() + view.lastMipmapLevel + 1};
  const auto level = [first](uint32_t extent) { return std::max(extent >> first, 1u); };
  t.width = level(t.width);
  t.height = level(t.height);
  t.depth = level(t.depth);
  if ((t.flags & VGPU_TEXTURE_LAYERED) != 0) {
    for (vgpu_texture_level& l : wire->levels) l.address += view.firstLayer * l.slice;
    t.layers = view.lastLayer - view.firstLayer + 1;
  }
  const auto fits = [](size_t wanted, uint32_t have) { return wanted == 0 || wanted == have; };
  return fits(view.width, t.width) && fits(view.height, t.height) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Create(const Current& current, Wire wire, Object object, unsigned long long* out) {
  if ((current.channel->transport().info().features & VGPU_FEATURE_TEXTURES) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  wire.texture.levels = static_cast<uint32_t>(wire.levels.size());
  std::vector<std::byte> payload(sizeof wire.texture + wire.levels.size() * sizeof wire.levels[0]);
  memcpy(payload.data(), &wire.texture, sizeof wire.texture);
  memcpy(payload.data() + sizeof wire.texture, wire.levels.data(), payload.size() - sizeof wire.texture);
  Command command;
  command.op = VGPU_OP_TEXTURE_CREATE;
  const Completion done = current.channel->Call(command, payload);
  if (done.status != CUDA_SUCCESS) return done.status;
  object.device = current.device;
  object.context = current.context.get();
  object.epoch = current.device->epoch.load();
  *out = done.value[0];
  Objects& objects = TheObjects();
  MutexLock lock(objects.mutex);
  objects.map[{current.device, done.value[0]}] = object;
  return CUDA_SUCCESS;
}

void PostDestroy(Device* device, uint64_t handle) {
  Command command;
  command.op = VGPU_OP_TEXTURE_DESTROY;
  command.args[0] = handle;
  device->channel->Post(command);
}

CUresult Destroy(unsigned long long handle, bool surface) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  Objects& objects = TheObjects();
  MutexLock lock(objects.mutex);
  const auto it = objects.map.find({current.device, handle});
  if (it == objects.map.end() || it->second.surface != surface) return CUDA_ERROR_INVALID_VALUE;
  const bool stale = it->second.epoch != current.device->epoch.load();
  objects.map.erase(it);
  if (stale) return CUDA_ERROR_INVALID_VALUE;
  PostDestroy(current.device, handle);
  return CUDA_SUCCESS;
}

// A copy of what `handle` was made from.
template <class T>
CUresult Tell(T* out, unsigned long long handle, bool surface, T Object::*part, bool needs_view = false) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  Objects& objects = TheObjects();
  MutexLock lock(objects.mutex);
  const auto it = objects.map.find({current.device, handle});
  if (out == nullptr || it == objects.map.end() || it->second.surface != surface) return CUDA_ERROR_INVALID_VALUE;
  if (needs_view && !it->second.has_view) return CUDA_ERROR_INVALID_VALUE;
  *out = it->second.*part;
  return CUDA_SUCCESS;
}

}  // namespace

void DropTexturesOf(const Context* context) {
  Objects& objects = TheObjects();
  MutexLock lock(objects.mutex);
  for (auto it = objects.map.begin(); it != objects.map.end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    if (it->second.epoch == it->second.device->epoch.load()) PostDestroy(it->second.device, it->first.second);
    it = objects.map.erase(it);
  }
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuTexObjectCreate)
(unsigned long long* out, const CUDA_RESOURCE_DESC_st* resource, const CUDA_TEXTURE_DESC_st* texture,
 const CUDA_RESOURCE_VIEW_DESC_st* view) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || resource == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Wire wire;
  if (const CUresult error = OfResource(current.device, *resource, &wire)) return error;
  if (const CUresult error = ApplySampling(*texture, &wire)) return error;
  Object object;
  object.resource = *resource;
  object.texture = *texture;
  if (view != nullptr) {
    if (const CUresult error = ApplyView(*view, &wire)) return error;
    object.view = *view;
    object.has_view = true;
  }
  return Create(current, std::move(wire), object, out);
}

CU_API(cuSurfObjectCreate)(unsigned long long* out, const CUDA_RESOURCE_DESC_st* resource) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  const auto array = FindArray(resource->res.array.hArray);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((array->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
  Wire wire;
  if (const CUresult error = OfResource(current.device, *resource, &wire)) return error;
  wire.texture.flags |= VGPU_TEXTURE_SURFACE;
  // Faces are layers where they are stored to.
  if (wire.texture.shape == VGPU_TEXTURE_CUBE) {
    wire.texture.shape = VGPU_TEXTURE_2D;
    wire.texture.flags |= VGPU_TEXTURE_LAYERED;
  }
  Object object;
  object.surface = true;
  object.resource = *resource;
  return Create(current, std::move(wire), object, out);
}

CU_API(cuTexObjectDestroy)(unsigned long long handle) { return Destroy(handle, false); }
CU_API(cuSurfObjectDestroy)(unsigned long long handle) { return Destroy(handle, true); }
CU_API(cuTexObjectGetResourceDesc)(CUDA_RESOURCE_DESC_st* out, unsigned long long handle) {
  return Tell(out, handle, false, &Object::resource);
}
CU_API(cuTexObjectGetTextureDesc)(CUDA_TEXTURE_DESC_st* out, unsigned long long handle) {
  return Tell(out, handle, false, &Object::texture);
}
CU_API(cuTexObjectGetResourceViewDesc)(CUDA_RESOURCE_VIEW_DESC_st* out, unsigned long long handle) {
  return Tell(out, handle, false, &Object::view, true);
}
CU_API(cuSurfObjectGetResourceDesc)(CUDA_RESOURCE_DESC_st* out, unsigned long long handle) {
  return Tell(out, handle, true, &Object::resource);
}

CU_API(cuDeviceGetTexture1DLinearMaxWidth)(size_t* out, int format, unsigned channels, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(ordinal, &device)) return error;
  if (out == nullptr || BytesOfFormat(format) * channels == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<size_t>(device->attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
  return CUDA_SUCCESS;
}
