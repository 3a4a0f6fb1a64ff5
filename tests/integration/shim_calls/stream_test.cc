// SPDX-License-Identifier: Apache-2.0
// Streams, events and host functions of libcuda.so.1, call by call.
#include <atomic>
#include <thread>

#include "tests/integration/shim_calls/wire.h"

namespace {

const auto kLegacy = reinterpret_cast<CUstream>(1);
const auto kPerThread = reinterpret_cast<CUstream>(2);
const auto kWild = reinterpret_cast<CUstream>(3);

TEST_F(ShimWire, StreamsAreMadeWithFlagsAndAPriorityOfTheRange) {
  int least = 99, greatest = 99;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(0, least);
  EXPECT_EQ(-5, greatest);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetStreamPriorityRange(nullptr, nullptr));
  const struct {
    unsigned flags;
    int wanted, given;
  } rows[] = {{0, 0, 0}, {CU_STREAM_NON_BLOCKING, 1, 0}, {0, -1, -1}, {CU_STREAM_NON_BLOCKING, -5, -5}, {0, -6, -5}};
  for (const auto& row : rows) {
    CUstream stream = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreateWithPriority(&stream, row.flags, row.wanted));
    int priority = 99;
    unsigned flags = 99;
    unsigned long long id = 0;
    CUcontext context = nullptr;
    CUdevice device = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetPriority(stream, &priority));
    EXPECT_EQ(row.given, priority);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetFlags(stream, &flags));
    EXPECT_EQ(row.flags, flags);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(stream, &id));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCtx(stream, &context));
    EXPECT_EQ(context_, context);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetDevice(stream, &device));
    EXPECT_EQ(0, device);
    EXPECT_EQ((Rows{{id, row.flags, static_cast<uint64_t>(int64_t{row.given})}}), ArgsOf(VGPU_OP_STREAM_CREATE, 3));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    EXPECT_EQ(Rows{{id}}, ArgsOf(VGPU_OP_STREAM_DESTROY, 1));
  }
  CUstream stream;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&stream, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(nullptr, 0));
}

TEST_F(ShimApi, DefaultStreamsHaveNoFlagsAndNoPriority) {
  for (const CUstream stream : {CUstream{nullptr}, kLegacy, kPerThread}) {
    int priority = 99;
    unsigned flags = 99;
    CUcontext context = nullptr;
    CUdevice device = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetPriority(stream, &priority));
    EXPECT_EQ(0, priority);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetFlags(stream, &flags));
    EXPECT_EQ(0u, flags);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCtx(stream, &context));
    EXPECT_EQ(context_, context);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetDevice(stream, &device));
    EXPECT_EQ(0, device);
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
  }
  int priority;
  unsigned flags;
  unsigned long long id;
  CUcontext context;
  CUdevice device;
  for (const CUresult result :
       {cuStreamGetPriority(kWild, &priority), cuStreamGetFlags(kWild, &flags), cuStreamGetId(kWild, &id),
        cuStreamGetCtx(kWild, &context), cuStreamGetDevice(kWild, &device), cuStreamDestroy_v2(kWild)}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, result);
  }
  for (const CUresult result :
       {cuStreamGetPriority(nullptr, nullptr), cuStreamGetFlags(nullptr, nullptr), cuStreamGetId(nullptr, nullptr),
        cuStreamGetCtx(nullptr, nullptr), cuStreamGetDevice(nullptr, nullptr)}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result);
  }
}

TEST_F(ShimWire, EveryThreadHasADefaultStreamOfItsOwn) {
  unsigned long long legacy = 99, plain = 99, mine = 0, again = 0, twin = 0, other = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(nullptr, &plain));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(kLegacy, &legacy));
  EXPECT_EQ(0u, plain);
  EXPECT_EQ(0u, legacy);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId_ptsz(kLegacy, &legacy));
  EXPECT_EQ(0u, legacy) << "also where null means the thread's own";
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(kPerThread, &mine));
  EXPECT_LE(16u, mine);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(kPerThread, &again));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId_ptsz(nullptr, &twin));
  EXPECT_EQ(mine, again);
  EXPECT_EQ(mine, twin);
  EXPECT_EQ((Rows{{mine, 0, 0}}), ArgsOf(VGPU_OP_STREAM_CREATE, 3));
  std::thread([&] {
    cuCtxSetCurrent(context_);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(kPerThread, &other));
  }).join();
  EXPECT_NE(mine, other);
  EXPECT_EQ(Rows{{other}}, ArgsOf(VGPU_OP_STREAM_DESTROY, 1)) << "with its thread";
  std::thread([&] {
    cuCtxSetCurrent(context_);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetId(kPerThread, &other));
    EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  }).join();
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_STREAM_DESTROY, 1)) << "gone with its context";
}

TEST_F(ShimWire, WaitingForAnEventIsOfAStream) {
  CUstream stream;
  CUevent event;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  unsigned long long id = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamGetId(stream, &id));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
  EXPECT_EQ(0u, Take(VGPU_OP_EVENT_WAIT).size()) << "an event that was never recorded holds nobody";
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecordWithFlags(event, stream, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
  const auto recorded = Take(VGPU_OP_EVENT_RECORD);
  const auto waited = Take(VGPU_OP_EVENT_WAIT);
  ASSERT_EQ(2u, recorded.size());
  ASSERT_EQ(1u, waited.size());
  EXPECT_EQ(0u, recorded[0].entry.stream);
  EXPECT_EQ(id, recorded[1].entry.stream);
  EXPECT_EQ(id, waited[0].entry.stream);
  EXPECT_NE(recorded[0].entry.args[0], recorded[1].entry.args[0]) << "the first may be reached after the second";
  EXPECT_EQ(recorded[1].Args(2), waited[0].Args(2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(stream, event, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(event, stream, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(stream, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(kWild, event, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(nullptr, stream));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, kWild));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimApi, EventFlagsAreKnownOnes) {
  CUevent event;
  for (const unsigned flags : {0u, 1u, 2u, 3u}) {
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, flags)) << flags;
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
  }
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, 8));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuEventCreate(nullptr, 0));
  for (const CUresult result : {cuEventQuery(nullptr), cuEventSynchronize(nullptr), cuEventDestroy_v2(nullptr)})
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, result);
}

TEST_F(ShimApi, OnlyRecordedEventsThatTimeAreTimed) {
  CUevent timed, other, untimed, never;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&timed, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&other, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&never, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuEventSynchronize(never));
  for (const CUevent event : {other, timed, untimed}) ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  float time = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuEventElapsedTime(&time, timed, other));
  EXPECT_FLOAT_EQ(-1.0f, time) << "backwards";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuEventElapsedTime(nullptr, timed, other));
  for (const CUevent bad : {untimed, never, CUevent{nullptr}}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&time, timed, bad));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&time, bad, timed));
  }
  for (const CUevent event : {timed, other, untimed, never}) EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

TEST_F(ShimApi, WhatHasNotBeenReachedIsNotReady) {
  CUstream stream;
  CUevent before, after;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&before, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&after, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(before, stream));
  StreamHold hold;
  hold.Put(stream);
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(after, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(before));
  float time = 0;
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&time, before, after));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&time, after, before));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(stream)) << "the same question";
  hold.LetGo();
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuEventElapsedTime(&time, before, after));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(before));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(after));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimWire, PollingAsksOnceForTheSameWork) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  StreamHold hold;
  hold.Put(stream);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  hold.LetGo();
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(1u, Take(VGPU_OP_STREAM_QUERY).size());
  EXPECT_EQ(2u, Take(VGPU_OP_EVENT_RECORD).size()) << "one is what holds the stream";
  EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(stream));
  Take(VGPU_OP_STREAM_QUERY);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(stream));
  EXPECT_TRUE(Take(VGPU_OP_STREAM_QUERY).empty()) << "nothing new";
  EXPECT_TRUE(Take(VGPU_OP_EVENT_RECORD).empty());
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

// CUDA runtime API, "cudaStreamQuery": a program may rely on it behind a wait.
TEST_F(ShimWire, AStreamThatHasBeenWaitedForIsReadyAtOnce) {
  const CUdeviceptr memory = Alloc(16);
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory, 1, 16, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(nullptr)) << "round " << round;
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory, 1, 16, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(nullptr)) << "round " << round;
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory, 1, 16, stream));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(stream)) << "round " << round;
  }
  EXPECT_TRUE(Take(VGPU_OP_EVENT_RECORD).empty());
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimApi, HostFunctionsAndCallbacksCheckTheirArguments) {
  const auto function = [](void*) {};
  const auto callback = [](CUstream, CUresult, void*) {};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(nullptr, nullptr, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(nullptr, callback, nullptr, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamAddCallback(kWild, callback, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLaunchHostFunc(kWild, function, nullptr));
}

TEST_F(ShimApi, ManyStreamsMayHaveHostFunctionsOneAfterTheOther) {
  std::atomic<int> count{0};
  const auto add = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
  std::vector<CUstream> streams(VGPU_GATES + 10);
  for (CUstream& stream : streams) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream, add, &count));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  }
  EXPECT_EQ(static_cast<int>(streams.size()), count);
  for (const CUstream stream : streams) EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimWire, AStreamTooManyIsRefusedWhenItIsMade) {
  CUstream stream = kWild;
  Wire::Get().Refuse(VGPU_OP_STREAM_CREATE, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuStreamCreate(&stream, 0));
  EXPECT_EQ(kWild, stream);
  EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize()) << "it was told, and that is all";
}

TEST_F(ShimWire, AnEarlierErrorIsNotTheStreams) {
  CUstream stream = nullptr;
  Wire::Get().Refuse(VGPU_OP_FILL, CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(Alloc(16), 1, 16, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamSynchronize(stream)) << "somebody hears of it";
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimWire, StreamAttributesAreThoseOfStreams) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  CUlaunchAttributeValue_union* none = nullptr;
  for (int id = 0; id < CU_LAUNCH_ATTRIBUTE_MAX; ++id) {
    alignas(8) unsigned char in[64], out[64] = {};
    memset(in, id + 1, sizeof in);
    auto* const value = reinterpret_cast<CUlaunchAttributeValue_union*>(in);
    auto* const told = reinterpret_cast<CUlaunchAttributeValue_union*>(out);
    const bool of_streams = id == 1 || id == 3 || id == 8 || id == 9 || id == 10;
    const CUresult expected = of_streams ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    EXPECT_EQ(expected, cuStreamSetAttribute(stream, id, value)) << id;
    EXPECT_EQ(expected, cuStreamGetAttribute(stream, id, told)) << id;
    EXPECT_EQ(of_streams ? id + 1 : 0, out[63]) << id;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(stream, id, none)) << id;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(stream, id, none)) << id;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamCopyAttributes(stream, kWild));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuStreamCopyAttributes(kWild, stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

}  // namespace
