// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden_cuda_object.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace vgpud::golden {
namespace {

// cuda.h: CUDA_ARRAY3D_*, CUmemorytype, CUresourcetype, CU_TRSF_*.
constexpr unsigned kLayered = 1, kSurface = 2, kCubemap = 4, kGather = 8;
constexpr int kHost = 1, kDevice = 2, kArray = 3;
constexpr int kFromArray = 0, kFromLevels = 1, kFromLinear = 2, kFromPitched = 3;
constexpr unsigned kReadAsInteger = 1, kNormalized = 2, kSrgb = 16;

}  // namespace

bool ObjectDriver::Load(void* library) {
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(library, name);
    std::memcpy(&function, &symbol, sizeof(function));
    if (symbol == nullptr) std::fprintf(stderr, "golden_cuda: libcuda.so.1 has no %s\n", name);
    return symbol != nullptr;
  };
#define FIND(name) find(#name, name)
  return FIND(cuArray3DCreate_v2) && FIND(cuArrayDestroy) && FIND(cuMipmappedArrayCreate) &&
         FIND(cuMipmappedArrayDestroy) && FIND(cuMipmappedArrayGetLevel) && FIND(cuMemAlloc_v2) &&
         FIND(cuMemAllocPitch_v2) && FIND(cuMemFree_v2) && FIND(cuMemcpy3D_v2) && FIND(cuTexObjectCreate) &&
         FIND(cuTexObjectDestroy) && FIND(cuSurfObjectCreate) && FIND(cuSurfObjectDestroy);
#undef FIND
}

CudaObject::~CudaObject() {
  if (handle_ != 0) object_.surface ? driver_.cuSurfObjectDestroy(handle_) : driver_.cuTexObjectDestroy(handle_);
  if (levels_ != nullptr) {
    driver_.cuMipmappedArrayDestroy(levels_);
  } else if (array_ != nullptr) {
    driver_.cuArrayDestroy(array_);
  }
  if (memory_ != 0) driver_.cuMemFree_v2(memory_);
}

Status CudaObject::Check(const char* call, Status s) {
  if (s != 0) failed_ = call;
  return s;
}

Status CudaObject::CreateArray() {
  const Object& o = object_;
  const bool cube = o.shape == Object::Shape::kCube;
  ArrayDescriptor d{};
  d.width = o.width;
  d.height = o.shape == Object::Shape::k1d ? 0 : o.height;
  d.depth = o.shape == Object::Shape::k3d ? o.depth : o.layered || cube ? o.images : 0;
  d.format = static_cast<int>(o.format);
  d.channels = o.channels;
  const bool gathers = o.shape == Object::Shape::k2d && !o.surface && o.levels == 1;
  d.flags = (o.layered ? kLayered : 0) | (o.surface ? kSurface : 0) | (cube ? kCubemap : 0) | (gathers ? kGather : 0);
  if (o.levels > 1) return Check("cuMipmappedArrayCreate", driver_.cuMipmappedArrayCreate(&levels_, &d, o.levels));
  return Check("cuArray3DCreate", driver_.cuArray3DCreate_v2(&array_, &d));
}

Status CudaObject::Copy(uint32_t level, uint8_t* host, bool to_host) {
  const Extent e = ExtentOf(object_, level);
  CopyDescriptor copy{};
  copy.width = size_t{e.width} * TexelBytes(object_);
  copy.height = e.height;
  copy.depth = size_t{e.depth} * object_.images;
  CopyPlace& here = to_host ? copy.to : copy.from;
  CopyPlace& there = to_host ? copy.from : copy.to;
  here.type = kHost;
  here.host = host;
  here.pitch = copy.width;
  here.height = copy.height;
  there.type = memory_ != 0 ? kDevice : kArray;
  there.device = memory_;
  there.pitch = pitch_;
  there.height = copy.height;
  there.array = array_;
  if (levels_ != nullptr) {
    if (const Status s = driver_.cuMipmappedArrayGetLevel(&there.array, levels_, level))
      return Check("cuMipmappedArrayGetLevel", s);
  }
  return Check("cuMemcpy3D", driver_.cuMemcpy3D_v2(&copy));
}

Status CudaObject::CreateHandle() {
  const Object& o = object_;
  ResourceDescriptor from{};
  if (o.shape == Object::Shape::kLinear) {
    from.type = kFromLinear;
    from.in.linear = {memory_, static_cast<int>(o.format), o.channels, ExtentOf(o, 0).bytes};
  } else if (o.shape == Object::Shape::kPitched) {
    from.type = kFromPitched;
    from.in.pitched = {memory_, static_cast<int>(o.format), o.channels, o.width, o.height, pitch_};
  } else {
    from.type = levels_ != nullptr ? kFromLevels : kFromArray;
    from.in.array = levels_ != nullptr ? levels_ : array_;
  }
  if (o.surface) return Check("cuSurfObjectCreate", driver_.cuSurfObjectCreate(&handle_, &from));
  TextureDescriptor how{};
  std::fill(std::begin(how.address), std::end(how.address), static_cast<int>(o.address));
  how.filter = o.linear ? 1 : 0;
  how.mip_filter = o.mip_linear ? 1 : 0;
  how.flags = (o.read_float ? 0 : kReadAsInteger) | (o.normalized ? kNormalized : 0) | (o.srgb ? kSrgb : 0);
  how.bias = o.bias;
  how.lowest = o.lowest;
  how.highest = o.highest;
  std::copy(std::begin(o.border), std::end(o.border), how.border);
  return Check("cuTexObjectCreate", driver_.cuTexObjectCreate(&handle_, &from, &how, nullptr));
}

Status CudaObject::Create() {
  const Extent e = ExtentOf(object_, 0);
  Status s = 0;
  if (object_.shape == Object::Shape::kLinear) {
    pitch_ = e.bytes;
    s = Check("cuMemAlloc", driver_.cuMemAlloc_v2(&memory_, e.bytes));
  } else if (object_.shape == Object::Shape::kPitched) {
    s = Check("cuMemAllocPitch",
              driver_.cuMemAllocPitch_v2(&memory_, &pitch_, size_t{e.width} * TexelBytes(object_), e.height, 16));
  } else {
    s = CreateArray();
  }
  std::vector<uint8_t> texels = object_.texels;
  uint8_t* from = texels.data();
  for (uint32_t level = 0; s == 0 && level < object_.levels; ++level) {
    s = Copy(level, from, false);
    from += ExtentOf(object_, level).bytes;
  }
  return s != 0 ? s : CreateHandle();
}

Status CudaObject::Read(std::vector<uint8_t>& texels) {
  texels.resize(ExtentOf(object_, 0).bytes);
  return Copy(0, texels.data(), true);
}

}  // namespace vgpud::golden
