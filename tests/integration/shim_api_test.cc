// SPDX-License-Identifier: Apache-2.0
// The driver API of libcuda.so.1 over a channel socket, served by a fake VF.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/shim_calls/wire.h"
#include "tests/scratch_dir.h"
#include "tests/unit/shim/fake_vf_connection.h"

namespace {

// A fake VF that lives as long as the test program, on a thread of it.
class Environment : public testing::Environment {
 public:
  void SetUp() override {
    if (getenv("SHIM_CHILD") != nullptr) return;  // shim_calls/visible_devices_test.cc
    directory_.emplace();
    path_ = directory_->path() + "/vf.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path_.c_str());
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(0, bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address));
    ASSERT_EQ(0, listen(listener, 1));
    std::thread([listener] {
      const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      close(listener);
      vgpud::ServeConnection(connection, [](vgpud::FakeExecutor& executor) {
        executor.OnEntry(
            [](const vgpu_sqe& entry, std::span<const std::byte> payload) { return Wire::Get().Note(entry, payload); });
      });
    }).detach();
    setenv("VGPU_CHANNEL", path_.c_str(), 1);
    ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  }
  void TearDown() override { directory_.reset(); }

 private:
  std::optional<vgpud::ScratchDir> directory_;  // in the process that serves it
  std::string path_;
};
const auto* const environment = testing::AddGlobalTestEnvironment(new Environment);

TEST_F(ShimApi, DescribesTheDevice) {
  int count = 0, major = 0, bus = 0;
  CUuuid_st uuid;
  char name[64], address[32];
  size_t bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetCount(&count));
  EXPECT_EQ(1, count);
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ("fake virtual GPU", name);
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceTotalMem_v2(&bytes, 0));
  EXPECT_EQ(size_t{1} << 30, bytes);
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(7, major);
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
  EXPECT_EQ(3, bus) << "from the transport";
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetPCIBusId(address, sizeof address, 0));
  EXPECT_STREQ("0000:03:05.0", address);
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetUuid(&uuid, 0));
  EXPECT_EQ(0xa1, static_cast<unsigned char>(uuid.bytes[1]));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof name, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&bus, 100000, 0));
}

TEST_F(ShimApi, KeepsAStackOfContextsPerThread) {
  CUcontext made = nullptr, current = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(made, current);
  std::thread([] {
    CUcontext other = reinterpret_cast<CUcontext>(1);
    CUdevice device;
    EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&other));
    EXPECT_EQ(nullptr, other);
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
  }).join();
  EXPECT_EQ(CUDA_SUCCESS, cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(made, current);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(context_, current);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(made));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)));
}

TEST_F(ShimApi, CopiesLargePageableMemory) {
  std::vector<uint32_t> in(2000000), out(in.size());
  std::iota(in.begin(), in.end(), 5);
  const size_t bytes = in.size() * 4;
  const CUdeviceptr a = Alloc(bytes), b = Alloc(bytes);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(a, in.data(), bytes));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoD_v2(b, a, bytes));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(out.data(), b, bytes));
  EXPECT_EQ(in, out);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(b, 0x01020304, in.size()));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), b, bytes));
  EXPECT_EQ(std::vector<uint32_t>(in.size(), 0x01020304), out);
}

TEST_F(ShimApi, TellsWrongAddressesAtOnce) {
  const CUdeviceptr a = Alloc(100);
  char host[200] = {};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, host, 200));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, a + 50, 51));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(0x1234560, 1, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a + 1, 1, 4)) << "misaligned";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a + 4));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(a));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
}

TEST_F(ShimApi, SharesPinnedMemory) {
  void* host = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 10000, CU_MEMHOSTALLOC_PORTABLE));
  const CUdeviceptr a = Alloc(10000);
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  memset(host, 0x5a, 10000);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(a, host, 10000, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(a + 100, 1, 10, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(static_cast<char*>(host) + 5000, a, 5000, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(0x5a, static_cast<char*>(host)[5099]);
  EXPECT_EQ(1, static_cast<char*>(host)[5100]);
  unsigned flags = 0, type = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostGetFlags(&flags, host));
  EXPECT_EQ(CU_MEMHOSTALLOC_PORTABLE, flags);
  EXPECT_EQ(CUDA_SUCCESS,
            cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host) + 77));
  EXPECT_EQ(unsigned{CU_MEMORYTYPE_HOST}, type);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 77));
  EXPECT_EQ(unsigned{CU_MEMORYTYPE_DEVICE}, type);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

TEST_F(ShimApi, CopiesRectangles) {
  size_t pitch = 0;
  CUdeviceptr a = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocPitch_v2(&a, &pitch, 100, 4, 4));
  EXPECT_EQ(512u, pitch);
  std::vector<unsigned char> in(400), out(400);
  std::iota(in.begin(), in.end(), 0);
  CUDA_MEMCPY2D_st copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = 100;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 100;
  copy.Height = 4;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy2D_v2(&copy));
  CUDA_MEMCPY2D_st back{};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = a;
  back.srcPitch = pitch;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out.data();
  back.dstPitch = 100;
  back.WidthInBytes = 100;
  back.Height = 4;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy2D_v2(&back));
  EXPECT_EQ(in, out);
  back.srcPitch = 50;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&back));
}

TEST_F(ShimApi, TimesEvents) {
  CUevent start, end;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&start, CU_EVENT_DEFAULT));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&end, CU_EVENT_DEFAULT));
  float milliseconds = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end)) << "never recorded";
  EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(start)) << "never recorded";
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(start, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(end, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(nullptr, end, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(end));
  EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(end));
  ASSERT_EQ(CUDA_SUCCESS, cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_FLOAT_EQ(1.0f, milliseconds) << "the fake's clock";
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(start));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(start));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(end));
}

TEST_F(ShimApi, QueriesStreams) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, -3));
  const CUdeviceptr a = Alloc(64);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(a, 1, 64, stream));
  CUresult result;
  while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  EXPECT_EQ(CUDA_SUCCESS, result);
  int priority = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(-3, priority);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(reinterpret_cast<CUstream>(0xdeadbeef)));
}

TEST_F(ShimApi, QueriesStreamsWithoutWaitingAlsoWhenManyEventsAreOnTheirWay) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  StreamHold hold;
  hold.Put(stream);
  std::vector<CUevent> events(3000);
  for (CUevent& event : events) {
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, CU_EVENT_DEFAULT));
    ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream));
  }
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  hold.LetGo();
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(stream));
  for (const CUevent each : events) EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(each));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimApi, LaunchesBothWays) {
  CUmodule module;
  CUfunction function;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nothing"));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "vectoradd"));
  size_t offset = 0, bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetParamInfo(function, 3, &offset, &bytes));
  EXPECT_EQ(24u, offset);
  EXPECT_EQ(4u, bytes);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function, 4, &offset, &bytes));
  int blocks = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
  EXPECT_EQ(4, blocks);

  std::vector<float> x(1000, 1.5f), z(1000);
  CUdeviceptr a = Alloc(4000), b = Alloc(4000), c = Alloc(4000);
  cuMemcpyHtoD_v2(a, x.data(), 4000);
  cuMemcpyHtoD_v2(b, x.data(), 4000);
  unsigned n = 1000;
  void* parameters[] = {&a, &b, &c, &n};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 1 << 20, nullptr, parameters, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(z.data(), c, 4000));
  EXPECT_EQ(std::vector<float>(1000, 3.0f), z);

  struct __attribute__((packed)) {
    CUdeviceptr a, b, c;
    unsigned n;
  } packed{c, c, a, n};
  size_t packed_bytes = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &packed_bytes, nullptr};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(z.data(), a, 4000));
  EXPECT_EQ(std::vector<float>(1000, 6.0f), z);
  // What a shorter buffer leaves out is zero, here the number of elements.
  packed = {a, a, c, n};
  packed_bytes = offsetof(decltype(packed), n);
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(z.data(), c, 4000));
  EXPECT_EQ(std::vector<float>(1000, 3.0f), z);
  packed_bytes += 1;
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(z.data(), c, 4000));
  EXPECT_EQ(12.0f, z[(n & 0xff) - 1]) << "the low byte of it";
  EXPECT_EQ(3.0f, z[n & 0xff]);
  void* nothing[] = {reinterpret_cast<void*>(2), &packed_bytes, nullptr};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nothing));
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
}

TEST_F(ShimApi, AFaultSticksUntilTheContextIsReset) {
  CUmodule module;
  CUfunction function;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "vectoradd"));
  CUdeviceptr wild = 0x123456;
  unsigned n = 10;
  void* parameters[] = {&wild, &wild, &wild, &n};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  CUdeviceptr a;
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&a, 16));
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  EXPECT_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&a, 16)) << "as with NVIDIA's driver, until it is retained";
  CUcontext again = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc_v2(&a, 16));
}

TEST_F(ShimApi, RefusesDamagedImages) {
  CUmodule module;
  CUlibrary library;
  uint32_t fatbin[8] = {0xba55ed50, 0x00100001, 0xffffffff, 0xffffffff};
  EXPECT_EQ(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, fatbin));
  fatbin[2] = 0x40000000;
  fatbin[3] = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_IMAGE, cuLibraryLoadData(&library, fatbin, nullptr, nullptr, 0, nullptr, nullptr, 0))
      << "longer than the memory behind it";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, nullptr));
  EXPECT_EQ(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent.ptx"));
  EXPECT_EQ(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/dev/null"));
}

TEST_F(ShimApi, HostFunctionsRunInStreamOrderAndHoldTheStreamBack) {
  struct Seen {
    // What orders the calls lies in another process, where ThreadSanitizer does not see it.
    std::mutex mutex;
    std::vector<int> order;
    void Note(int number) {
      const std::lock_guard lock(mutex);
      order.push_back(number);
    }
    std::vector<int> Order() {
      const std::lock_guard lock(mutex);
      return order;
    }
  } seen;
  StreamHold hold;
  CUstream stream;
  CUevent event;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, nullptr, nullptr));
  const auto first = [](void* data) { static_cast<Seen*>(data)->Note(1); };
  const auto second = [](CUstream of, CUresult status, void* data) {
    static_cast<Seen*>(data)->Note(of != nullptr && status == CUDA_SUCCESS ? 2 : -2);
  };
  hold.Put(stream);
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream, first, &seen));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamAddCallback(stream, second, &seen, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  EXPECT_EQ(std::vector<int>{}, seen.Order());
  hold.LetGo();
  EXPECT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
  EXPECT_EQ((std::vector<int>{1, 2}), seen.Order());
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

TEST_F(ShimApi, PoolsKeepWhatTheirThresholdAllows) {
  CUmemoryPool pool = nullptr, again = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetDefaultMemPool(&pool, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetMemPool(&again, 0));
  EXPECT_EQ(pool, again);
  const auto attribute = [&](int which) {
    uint64_t value = ~uint64_t{0};
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, which, &value));
    return value;
  };
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&a, 1000, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(a, 1, 1000));
  EXPECT_EQ(1024u, attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(a, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, nullptr)) << "twice";
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&b, 1000, nullptr));
  EXPECT_EQ(a, b) << "the same stream may have it at once";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(b, nullptr));
  EXPECT_EQ(1024u, attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(0u, attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) << "the threshold is 0";
  EXPECT_EQ(1024u, attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));

  uint64_t threshold = 1 << 20;
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&a, 5000, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(a)) << "also frees memory of a pool";
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(5120u, attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
  EXPECT_EQ(0u, attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));

  CUmemPoolProps_st properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool own = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&own, &properties));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&a, 64, own, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolDestroy(own));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&b, 64, own, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(a, 1, 64)) << "its block lives on";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(a, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool)) << "the default pool stays";
}

TEST_F(ShimApi, RemembersLimitsAndStreamAttributes) {
  size_t value = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(1024u, value);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(4096u, value);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
  EXPECT_EQ(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&value, 1000));

  alignas(8) int in[16] = {7}, out[16] = {};
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  const auto as_value = [](int* p) { return reinterpret_cast<CUlaunchAttributeValue_union*>(p); };
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, as_value(in)));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamCopyAttributes(nullptr, stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetAttribute(nullptr, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, as_value(out)));
  EXPECT_EQ(7, out[0]);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, as_value(in)));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimApi, AForkedChildIsNotInitialized) {
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr a;
    int count;
    _exit(cuMemAlloc_v2(&a, 16) == CUDA_ERROR_NOT_INITIALIZED && cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  Alloc(16);
}

}  // namespace
