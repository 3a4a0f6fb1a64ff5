// SPDX-License-Identifier: Apache-2.0
// Calls that share memory with OpenGL, EGL and VDPAU. A virtual function draws nothing, so each answers what CUDA
// documents for a device that another one draws for. Programs that never draw (ffmpeg, pycuda) do not load without the
// names.
#include "guest-driver-shim/libcuda/channel/trace.h"
#include "guest-driver-shim/libcuda/driver/driver.h"

namespace {

using namespace vgpud::cuda;

// What a call has to have before its answer counts.
enum class Needs { kDriver, kContext };

CUresult Refuse(const char* name, Needs needs, CUresult answer) {
  const CUresult error = needs == Needs::kContext ? CurrentContext().error : Driver::Get().Ready();
  if (error != CUDA_SUCCESS) return error;
  SayOnce(name, "is refused: a virtual GPU draws nothing that OpenGL, EGL or VDPAU could share; copy instead");
  return answer;
}

}  // namespace

#define CU_REFUSES(name, parameters, needs, answer) \
  CU_API(name) parameters { return Refuse(#name, Needs::needs, answer); }

using Egl = CUeglStreamConnection;
using Resource = CUgraphicsResource;
using VdpGetProcAddress = int (*)(unsigned, unsigned, void**);

// Which CUDA device draws: none.
CU_REFUSES(cuGLGetDevices, (unsigned*, CUdevice*, unsigned, int), kDriver, CUDA_ERROR_NO_DEVICE)
CU_REFUSES(cuGLGetDevices_v2, (unsigned*, CUdevice*, unsigned, int), kDriver, CUDA_ERROR_NO_DEVICE)
CU_REFUSES(cuVDPAUGetDevice, (CUdevice*, unsigned, VdpGetProcAddress), kDriver, CUDA_ERROR_NO_DEVICE)

// These work on the current OpenGL context, which is not this device's.
CU_REFUSES(cuGLCtxCreate, (CUcontext*, unsigned, CUdevice), kDriver, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLCtxCreate_v2, (CUcontext*, unsigned, CUdevice), kDriver, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLInit, (), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLRegisterBufferObject, (unsigned), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLUnregisterBufferObject, (unsigned), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLSetBufferObjectMapFlags, (unsigned, unsigned), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLMapBufferObject, (unsigned*, unsigned*, unsigned), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLMapBufferObject_v2, (CUdeviceptr*, size_t*, unsigned), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLMapBufferObject_v2_ptds, (CUdeviceptr*, size_t*, unsigned), kContext,
           CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLMapBufferObjectAsync, (unsigned*, unsigned*, unsigned, CUstream), kContext,
           CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLMapBufferObjectAsync_v2, (CUdeviceptr*, size_t*, unsigned, CUstream), kContext,
           CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLMapBufferObjectAsync_v2_ptsz, (CUdeviceptr*, size_t*, unsigned, CUstream), kContext,
           CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLUnmapBufferObject, (unsigned), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
CU_REFUSES(cuGLUnmapBufferObjectAsync, (unsigned, CUstream), kContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)

// Registering: the system's own libraries would have to help, and have nothing to do with this device.
CU_REFUSES(cuGraphicsGLRegisterBuffer, (Resource*, unsigned, unsigned), kContext, CUDA_ERROR_OPERATING_SYSTEM)
CU_REFUSES(cuGraphicsGLRegisterImage, (Resource*, unsigned, unsigned, unsigned), kContext, CUDA_ERROR_OPERATING_SYSTEM)

// No error of their own is documented for a device without EGL and VDPAU.
CU_REFUSES(cuVDPAUCtxCreate, (CUcontext*, unsigned, CUdevice, unsigned, VdpGetProcAddress), kDriver,
           CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuVDPAUCtxCreate_v2, (CUcontext*, unsigned, CUdevice, unsigned, VdpGetProcAddress), kDriver,
           CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuGraphicsVDPAURegisterVideoSurface, (Resource*, unsigned, unsigned), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuGraphicsVDPAURegisterOutputSurface, (Resource*, unsigned, unsigned), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuGraphicsEGLRegisterImage, (Resource*, void*, unsigned), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEventCreateFromEGLSync, (CUevent*, void*, unsigned), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamConsumerConnect, (Egl*, void*), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamConsumerConnectWithFlags, (Egl*, void*, unsigned), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamConsumerDisconnect, (Egl*), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamConsumerAcquireFrame, (Egl*, Resource*, CUstream*, unsigned), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamConsumerReleaseFrame, (Egl*, Resource, CUstream*), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamProducerConnect, (Egl*, void*, int, int), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamProducerDisconnect, (Egl*), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamProducerPresentFrame, (Egl*, CUeglFrame_st, CUstream*), kContext, CUDA_ERROR_NOT_SUPPORTED)
CU_REFUSES(cuEGLStreamProducerReturnFrame, (Egl*, CUeglFrame_st*, CUstream*), kContext, CUDA_ERROR_NOT_SUPPORTED)

// Nothing was ever registered, so every handle is a wild one.
CU_REFUSES(cuGraphicsUnregisterResource, (Resource), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsSubResourceGetMappedArray, (CUarray*, Resource, unsigned, unsigned), kContext,
           CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsResourceGetMappedMipmappedArray, (CUmipmappedArray*, Resource), kContext,
           CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsResourceGetMappedPointer, (unsigned*, unsigned*, Resource), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsResourceGetMappedPointer_v2, (CUdeviceptr*, size_t*, Resource), kContext,
           CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsResourceGetMappedEglFrame, (CUeglFrame_st*, Resource, unsigned, unsigned), kContext,
           CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsResourceSetMapFlags, (Resource, unsigned), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsResourceSetMapFlags_v2, (Resource, unsigned), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsMapResources, (unsigned, Resource*, CUstream), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsMapResources_ptsz, (unsigned, Resource*, CUstream), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsUnmapResources, (unsigned, Resource*, CUstream), kContext, CUDA_ERROR_INVALID_HANDLE)
CU_REFUSES(cuGraphicsUnmapResources_ptsz, (unsigned, Resource*, CUstream), kContext, CUDA_ERROR_INVALID_HANDLE)
