// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects of golden tests over the CUDA driver API. Declares what it needs of it itself.
#pragma once

#include "tests/golden/golden.h"

namespace vgpud::golden {

using Status = int;                   // CUresult
using DeviceVa = unsigned long long;  // CUdeviceptr

struct ArrayDescriptor {  // CUDA_ARRAY3D_DESCRIPTOR
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
struct ResourceDescriptor {  // CUDA_RESOURCE_DESC
  int type;
  union {
    void* array;
    struct {
      DeviceVa address;
      int format;
      unsigned channels;
      size_t bytes;
    } linear;
    struct {
      DeviceVa address;
      int format;
      unsigned channels;
      size_t width, height, pitch;
    } pitched;
    int reserved[32];
  } in;
  unsigned flags;
};
static_assert(sizeof(ResourceDescriptor) == 144);
struct TextureDescriptor {  // CUDA_TEXTURE_DESC
  int address[3];
  int filter;
  unsigned flags, anisotropy;
  int mip_filter;
  float bias, lowest, highest;
  float border[4];
  int reserved[12];
};
static_assert(sizeof(TextureDescriptor) == 104);
struct CopyPlace {  // the halves of CUDA_MEMCPY3D
  size_t x, y, z, level;
  int type;
  void* host;
  DeviceVa device;
  void* array;
  void* reserved;
  size_t pitch, height;
};
struct CopyDescriptor {
  CopyPlace from, to;
  size_t width, height, depth;
};
static_assert(sizeof(CopyDescriptor) == 200);

struct ObjectDriver {
  Status (*cuArray3DCreate_v2)(void**, const ArrayDescriptor*);
  Status (*cuArrayDestroy)(void*);
  Status (*cuMipmappedArrayCreate)(void**, const ArrayDescriptor*, unsigned);
  Status (*cuMipmappedArrayDestroy)(void*);
  Status (*cuMipmappedArrayGetLevel)(void**, void*, unsigned);
  Status (*cuMemAlloc_v2)(DeviceVa*, size_t);
  Status (*cuMemAllocPitch_v2)(DeviceVa*, size_t*, size_t, size_t, unsigned);
  Status (*cuMemFree_v2)(DeviceVa);
  Status (*cuMemcpy3D_v2)(const CopyDescriptor*);
  Status (*cuTexObjectCreate)(uint64_t*, const ResourceDescriptor*, const TextureDescriptor*, const void*);
  Status (*cuTexObjectDestroy)(uint64_t);
  Status (*cuSurfObjectCreate)(uint64_t*, const ResourceDescriptor*);
  Status (*cuSurfObjectDestroy)(uint64_t);

  // From the libcuda.so.1 that dlopen gave; false: a function is missing, stderr has its name.
  bool Load(void* library);
};

// One object and its memory, until it goes.
class CudaObject {
 public:
  CudaObject(const ObjectDriver& driver, const Object& object) : driver_(driver), object_(object) {}
  CudaObject(const CudaObject&) = delete;
  CudaObject& operator=(const CudaObject&) = delete;
  ~CudaObject();

  // Makes memory and object; on failure failed() is the call that failed.
  Status Create();
  const char* failed() const { return failed_; }
  // What the kernel gets; 0 before.
  uint64_t handle() const { return handle_; }
  // What level 0 holds, after the kernel.
  Status Read(std::vector<uint8_t>& texels);

 private:
  Status Check(const char* call, Status s);
  Status CreateArray();
  Status Copy(uint32_t level, uint8_t* host, bool to_host);
  Status CreateHandle();

  const ObjectDriver& driver_;
  const Object& object_;
  const char* failed_ = "";
  void* array_ = nullptr;
  void* levels_ = nullptr;
  DeviceVa memory_ = 0;
  size_t pitch_ = 0;
  uint64_t handle_ = 0;
};

}  // namespace vgpud::golden
