// SPDX-License-Identifier: Apache-2.0
// The calls of libcuda.so.1 for OpenGL, EGL and VDPAU: all there, all refused.
#include <dlfcn.h>

#include <string>

#include "tests/integration/shim_calls/wire.h"

namespace {

class ShimInterop : public ShimApi {};

// Those that ffmpeg's loader and pycuda's module ask the dynamic linker for.
TEST_F(ShimInterop, ProgramsFindTheNamesTheyAreLinkedWith) {
  for (const char* name : {"cuGLGetDevices_v2",
                           "cuGraphicsGLRegisterImage",
                           "cuGraphicsUnregisterResource",
                           "cuGraphicsMapResources",
                           "cuGraphicsUnmapResources",
                           "cuGraphicsSubResourceGetMappedArray",
                           "cuGraphicsResourceGetMappedPointer_v2",
                           "cuEGLStreamProducerConnect",
                           "cuEGLStreamProducerDisconnect",
                           "cuEGLStreamConsumerDisconnect",
                           "cuEGLStreamProducerPresentFrame",
                           "cuEGLStreamProducerReturnFrame",
                           "cuGLInit",
                           "cuGLCtxCreate_v2",
                           "cuGLRegisterBufferObject",
                           "cuGLUnregisterBufferObject",
                           "cuGLMapBufferObject_v2",
                           "cuGLUnmapBufferObject",
                           "cuGraphicsGLRegisterBuffer",
                           "cuVDPAUGetDevice",
                           "cuVDPAUCtxCreate_v2"}) {
    EXPECT_NE(nullptr, dlsym(RTLD_DEFAULT, name)) << name;
  }
  EXPECT_EQ(nullptr, dlsym(RTLD_DEFAULT, "cuWGLGetDevice")) << "of another system";
}

TEST_F(ShimInterop, EachCallIsRefusedAsCudaDocuments) {
  unsigned count = 0;
  CUdevice device = 0;
  CUcontext made = nullptr;
  CUgraphicsResource resource = nullptr;
  CUeglStreamConnection connection = nullptr;
  CUeglFrame_st frame{};
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const struct {
    CUresult expected, answer;
  } rows[] = {
      {CUDA_ERROR_NO_DEVICE, cuGLGetDevices_v2(&count, &device, 1, 1)},
      {CUDA_ERROR_NO_DEVICE, cuVDPAUGetDevice(&device, 1, nullptr)},
      {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLCtxCreate_v2(&made, 0, 0)},
      {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLInit()},
      {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLRegisterBufferObject(1)},
      {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLMapBufferObject_v2(&address, &bytes, 1)},
      {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLMapBufferObjectAsync_v2_ptsz(&address, &bytes, 1, nullptr)},
      {CUDA_ERROR_OPERATING_SYSTEM, cuGraphicsGLRegisterBuffer(&resource, 1, 0)},
      {CUDA_ERROR_OPERATING_SYSTEM, cuGraphicsGLRegisterImage(&resource, 1, 0x0de1, 0)},
      {CUDA_ERROR_NOT_SUPPORTED, cuGraphicsEGLRegisterImage(&resource, nullptr, 0)},
      {CUDA_ERROR_NOT_SUPPORTED, cuEGLStreamProducerConnect(&connection, nullptr, 1, 1)},
      {CUDA_ERROR_NOT_SUPPORTED, cuEGLStreamProducerPresentFrame(&connection, frame, nullptr)},
      {CUDA_ERROR_NOT_SUPPORTED, cuVDPAUCtxCreate_v2(&made, 0, 0, 1, nullptr)},
      {CUDA_ERROR_NOT_SUPPORTED, cuGraphicsVDPAURegisterVideoSurface(&resource, 1, 0)},
      {CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, &resource, nullptr)},
      {CUDA_ERROR_INVALID_HANDLE, cuGraphicsResourceGetMappedPointer_v2(&address, &bytes, resource)},
      {CUDA_ERROR_INVALID_HANDLE, cuGraphicsResourceGetMappedEglFrame(&frame, resource, 0, 0)},
      {CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(resource)},
  };
  for (size_t i = 0; i < std::size(rows); ++i) EXPECT_EQ(rows[i].expected, rows[i].answer) << "row " << i;
  EXPECT_EQ(nullptr, made);
  EXPECT_EQ(nullptr, resource);
}

TEST_F(ShimInterop, WithoutAContextThatComesFirst) {
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(nullptr));
  CUgraphicsResource resource = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuGraphicsGLRegisterBuffer(&resource, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuGraphicsUnregisterResource(nullptr));
  unsigned count = 0;
  CUdevice device = 0;
  EXPECT_EQ(CUDA_ERROR_NO_DEVICE, cuGLGetDevices_v2(&count, &device, 1, 1)) << "asked for before there is one";
}

}  // namespace
