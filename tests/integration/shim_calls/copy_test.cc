// SPDX-License-Identifier: Apache-2.0
// Copies and fills of libcuda.so.1: what is sent for them, and which arguments they refuse.
#include <numeric>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

const auto kWild = reinterpret_cast<CUstream>(3);

class ShimCopy : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream_, 0));
    unsigned long long id = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuStreamGetId(stream_, &id));
    id_ = static_cast<uint32_t>(id);
    a_ = Alloc(4096), b_ = Alloc(4096);
    std::iota(host_.begin(), host_.end(), 0);
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream_));
    ShimWire::TearDown();
  }
  // What lies at `from` on the device.
  static std::vector<unsigned char> Bytes(CUdeviceptr from, size_t count) {
    std::vector<unsigned char> bytes(count);
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(bytes.data(), from, count));
    return bytes;
  }
  CUstream stream_ = nullptr;
  uint32_t id_ = 0;
  CUdeviceptr a_ = 0, b_ = 0;
  std::vector<unsigned char> host_ = std::vector<unsigned char>(4096);
};

TEST_F(ShimCopy, CopiesOfNothingAreNothing) {
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(0, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(nullptr, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoD_v2(0, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpy(0, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(0, 1, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D8_v2(0, 0, 1, 5, 0));
  // No rows, or rows of nothing: neither the pitch nor their number matters.
  constexpr size_t kMany = size_t{1} << 62;
  for (const auto& [width, height] : {std::pair<size_t, size_t>{0, 5}, {5, 0}, {0, 0}, {0, kMany}, {kMany, 0}}) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D8_v2(a_, 3, 1, width, height));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D16_v2(a_, 3, 1, width, height));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D32_v2(a_, 3, 1, width, height));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D32Async(a_, 3, 1, width, height, stream_));
    CUDA_MEMCPY2D_st rows{};
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.srcDevice = a_;
    rows.dstDevice = b_;
    rows.WidthInBytes = width;
    rows.Height = height;
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpy2D_v2(&rows));
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpy2DAsync_v2(&rows, stream_));
  }
  for (const uint32_t op : {VGPU_OP_COPY_IN, VGPU_OP_COPY_OUT, VGPU_OP_COPY_DEV, VGPU_OP_FILL})
    EXPECT_EQ(0u, Take(op).size());
}

TEST_F(ShimCopy, NullPointersAreRefused) {
  for (const CUresult result :
       {cuMemcpyHtoD_v2(a_, nullptr, 1), cuMemcpyHtoD_v2(0, host_.data(), 1), cuMemcpyDtoH_v2(nullptr, a_, 1),
        cuMemcpyDtoH_v2(host_.data(), 0, 1), cuMemcpyDtoD_v2(0, a_, 1), cuMemcpyDtoD_v2(a_, 0, 1),
        cuMemcpyHtoDAsync_v2(a_, nullptr, 1, stream_), cuMemcpyDtoHAsync_v2(nullptr, a_, 1, stream_),
        cuMemcpyDtoDAsync_v2(a_, 0, 1, stream_), cuMemsetD8_v2(0, 1, 1)}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result);
  }
  for (const CUresult result :
       {cuMemcpyHtoDAsync_v2(a_, host_.data(), 1, kWild), cuMemcpyDtoHAsync_v2(host_.data(), a_, 1, kWild),
        cuMemcpyDtoDAsync_v2(a_, b_, 1, kWild), cuMemcpyAsync(a_, b_, 1, kWild), cuMemsetD8Async(a_, 1, 1, kWild)}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, result);
  }
}

TEST_F(ShimCopy, AsynchronousCopiesAreOfTheirStream) {
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(a_ + 3, host_.data(), 5, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(b_ + 1, a_ + 2, 7, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(host_.data(), b_, 9, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD16Async(a_ + 4, 0x1234, 6, stream_));
  const auto in = Take(VGPU_OP_COPY_IN), on = Take(VGPU_OP_COPY_DEV), out = Take(VGPU_OP_COPY_OUT),
             fill = Take(VGPU_OP_FILL);
  ASSERT_EQ(1u, in.size());
  EXPECT_EQ(std::vector<uint64_t>{a_ + 3}, in[0].Args(1));
  EXPECT_EQ(5u, in[0].payload.size());
  ASSERT_EQ(1u, on.size());
  EXPECT_EQ((std::vector<uint64_t>{b_ + 1, a_ + 2, 7}), on[0].Args(3));
  ASSERT_EQ(1u, out.size());
  EXPECT_EQ(std::vector<uint64_t>{b_}, out[0].Args(1));
  EXPECT_EQ(9u, out[0].payload.size());
  ASSERT_EQ(1u, fill.size());
  EXPECT_EQ((std::vector<uint64_t>{a_ + 4, 0x1234, 2, 6}), fill[0].Args(4));
  for (const auto* sent : {&in, &on, &out, &fill}) EXPECT_EQ(id_, sent->front().entry.stream);
}

// 512 KiB fit many times into the payload area, and leave the device something to do while the next one is staged.
TEST_F(ShimCopy, LargeCopiesGoInPiecesOfHalfAMebibyte) {
  const size_t piece = 512 << 10, bytes = 2 * piece + 3;
  std::vector<unsigned char> memory(bytes, 1);
  const CUdeviceptr device = Alloc(bytes);
  const auto sizes = [](const std::vector<Sent>& sent) {
    Rows rows;
    for (const Sent& each : sent) rows.push_back({each.entry.args[0], each.payload.size()});
    return rows;
  };
  const Rows expected = {{device, piece}, {device + piece, piece}, {device + 2 * piece, 3}};
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(device, memory.data(), bytes));
  EXPECT_EQ(expected, sizes(Take(VGPU_OP_COPY_IN)));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(memory.data(), device, bytes));
  EXPECT_EQ(expected, sizes(Take(VGPU_OP_COPY_OUT)));
}

// As CUDA documents: a copy from pageable memory may return when up to 64 KiB are staged.
TEST_F(ShimCopy, OnlyLongCopiesFromPageableMemoryAreWaitedFor) {
  const size_t staged = 64 << 10;
  std::vector<unsigned char> memory(staged + 1);
  const CUdeviceptr device = Alloc(memory.size());
  const auto waits = [&] {
    std::vector<bool> list;
    for (const Sent& sent : Take(VGPU_OP_COPY_IN)) list.push_back((sent.entry.flags & VGPU_SQE_WANT_COMPLETION) != 0);
    return list;
  };
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(device, memory.data(), staged));
  EXPECT_EQ(std::vector<bool>{false}, waits());
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(device, memory.data(), staged + 1));
  EXPECT_EQ(std::vector<bool>{true}, waits());
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device, memory.data(), staged + 1, stream_));
  EXPECT_EQ(std::vector<bool>{false}, waits());
  std::vector<unsigned char> three(3 * (512 << 10));
  const CUdeviceptr large = Alloc(three.size());
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(large, three.data(), three.size()));
  EXPECT_EQ((std::vector<bool>{false, false, true}), waits()) << "the last piece";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(0x4000, memory.data(), 1)) << "told at once";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync_v2(0x4000, memory.data(), 1, stream_));
}

TEST_F(ShimCopy, CopiesOnTheDeviceDoNotHoldUpTheHost) {
  const auto waited = [&] { return (Take(VGPU_OP_COPY_DEV).at(0).entry.flags & VGPU_SQE_WANT_COMPLETION) != 0; };
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoD_v2(a_, b_, 4096));
  EXPECT_FALSE(waited());
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy(a_, b_, 16));
  EXPECT_TRUE(waited());
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(a_, b_, 4097)) << "more than there is, told at once";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(a_ + 1, b_, 4096));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(a_, b_ + 1, 4096));
}

TEST_F(ShimCopy, PinnedMemoryIsNamedByItsBufferAndOffset) {
  void* pinned = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&pinned, 5000, 0));
  auto* const at = static_cast<unsigned char*>(pinned);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(a_ + 8, at + 100, 16, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(at + 200, a_, 32, stream_));
  const auto in = Take(VGPU_OP_BUF_IN), out = Take(VGPU_OP_BUF_OUT);
  ASSERT_EQ(1u, in.size());
  ASSERT_EQ(1u, out.size());
  const uint64_t buffer = in[0].entry.args[1];
  EXPECT_EQ((std::vector<uint64_t>{a_ + 8, buffer, 100, 16}), in[0].Args(4));
  EXPECT_EQ((std::vector<uint64_t>{a_, buffer, 200, 32}), out[0].Args(4));
  EXPECT_EQ(id_, in[0].entry.stream);
  EXPECT_EQ(0u, in[0].entry.flags);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(a_, at, 1));
  EXPECT_EQ(unsigned{VGPU_SQE_WANT_COMPLETION}, Take(VGPU_OP_BUF_IN).at(0).entry.flags);
  // Whole pages are pinned; what goes beyond them is copied as any other memory.
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(a_, at + 8191, 1));
  EXPECT_EQ(1u, Take(VGPU_OP_BUF_IN).size());
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(pinned));
}

TEST_F(ShimCopy, CopiesBetweenHostsWaitForTheStream) {
  std::vector<unsigned char> to(16);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to.data()),
                                        reinterpret_cast<CUdeviceptr>(host_.data() + 5), 16, stream_));
  EXPECT_EQ(20, to[15]);
  const auto synced = Take(VGPU_OP_STREAM_SYNC);
  ASSERT_EQ(1u, synced.size());
  EXPECT_EQ(id_, synced[0].entry.stream);
}

TEST_F(ShimCopy, PeersAreContextsOfThisProcess) {
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyPeerAsync(a_, context_, b_, context_, 16, stream_));
  EXPECT_EQ(id_, Take(VGPU_OP_COPY_DEV).at(0).entry.stream);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeerAsync(a_, nullptr, b_, context_, 16, stream_));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeerAsync(a_, context_, b_, nullptr, 16, stream_));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(a_, nullptr, b_, context_, 16));
}

TEST_F(ShimCopy, FillsSayElementsAndTheirSize) {
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(a_ + 1, 0x11, 3));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD16_v2(a_ + 2, 0x2222, 4));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(a_ + 4, 0x33333333, 5));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D8_v2(a_, 10, 0x44, 10, 2));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D16_v2(a_, 20, 0x55, 10, 2));
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D32Async(a_, 44, 0x66, 10, 2, stream_));
  EXPECT_EQ((Rows{{a_ + 1, 0x11, 1, 3},
                  {a_ + 2, 0x2222, 2, 4},
                  {a_ + 4, 0x33333333, 4, 5},
                  {a_, 0x44, 1, 10},
                  {a_ + 10, 0x44, 1, 10},
                  {a_, 0x55, 2, 10},
                  {a_ + 20, 0x55, 2, 10},
                  {a_, 0x66, 4, 10},
                  {a_ + 44, 0x66, 4, 10}}),
            ArgsOf(VGPU_OP_FILL, 4));
  const CUresult refused[] = {
      cuMemsetD16_v2(a_ + 1, 1, 1),       cuMemsetD32_v2(a_ + 2, 1, 1),           cuMemsetD2D8_v2(a_, 9, 1, 10, 2),
      cuMemsetD2D16_v2(a_, 19, 1, 8, 2),  cuMemsetD2D16_v2(a_, 18, 1, 10, 2),     cuMemsetD2D32_v2(a_, 42, 1, 10, 2),
      cuMemsetD2D32_v2(a_, 36, 1, 10, 2), cuMemsetD32_v2(a_, 1, size_t{1} << 62), cuMemsetD8_v2(a_, 1, 4097)};
  for (size_t i = 0; i < std::size(refused); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, refused[i]) << i;
  EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D32_v2(a_, 0, 1, 10, 1)) << "one row has no pitch";
}

class ShimRows : public ShimCopy {
 protected:
  // A copy of 4 bytes by 3 rows by 2 slices between layouts of 6 by 4 rows and 8 by 5.
  CUDA_MEMCPY3D_st Box() {
    CUDA_MEMCPY3D_st c{};
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = a_, c.srcPitch = 6, c.srcHeight = 4;
    c.dstMemoryType = CU_MEMORYTYPE_UNIFIED, c.dstDevice = b_, c.dstPitch = 8, c.dstHeight = 5;
    c.WidthInBytes = 4, c.Height = 3, c.Depth = 2;
    return c;
  }
};

TEST_F(ShimRows, EveryRowIsCopiedToItsPlace) {
  CUDA_MEMCPY3D_st c = Box();
  c.srcXInBytes = 1, c.srcY = 1, c.srcZ = 1;
  c.dstXInBytes = 2, c.dstY = 2, c.dstZ = 3;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3D_v2(&c));
  Rows expected;
  for (uint64_t z = 0; z < 2; ++z)
    for (uint64_t y = 0; y < 3; ++y)
      expected.push_back({b_ + (3 + z) * 40 + (2 + y) * 8 + 2, a_ + (1 + z) * 24 + (1 + y) * 6 + 1, 4});
  const auto sent = Take(VGPU_OP_COPY_DEV);
  Rows told;
  for (const Sent& each : sent) told.push_back(each.Args(3));
  EXPECT_EQ(expected, told);
  for (size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(i + 1 == sent.size(), sent[i].entry.flags != 0) << "only the last is waited for: " << i;
}

TEST_F(ShimRows, AdjoiningRowsAreOneCopy) {
  CUDA_MEMCPY3D_st c = Box();
  c.srcPitch = c.dstPitch = 4;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3DAsync_v2(&c, stream_));
  EXPECT_EQ((Rows{{b_, a_, 12}, {b_ + 20, a_ + 16, 12}}), ArgsOf(VGPU_OP_COPY_DEV, 3)) << "rows, not slices";
  c.srcHeight = c.dstHeight = 3;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3DAsync_v2(&c, stream_));
  EXPECT_EQ((Rows{{b_, a_, 24}}), ArgsOf(VGPU_OP_COPY_DEV, 3));
  c.srcPitch = c.dstPitch = c.srcHeight = c.dstHeight = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3DAsync_v2(&c, stream_));
  EXPECT_EQ((Rows{{b_, a_, 24}}), ArgsOf(VGPU_OP_COPY_DEV, 3)) << "no pitch and no height: packed";
  c.srcPitch = 5;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3DAsync_v2(&c, stream_));
  EXPECT_EQ(6u, Take(VGPU_OP_COPY_DEV).size()) << "only one side is packed";
  c.srcPitch = 0, c.dstPitch = 5;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3DAsync_v2(&c, stream_));
  EXPECT_EQ(6u, Take(VGPU_OP_COPY_DEV).size());
  c = Box();
  c.Height = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy3DAsync_v2(&c, stream_));
  EXPECT_EQ((Rows{{b_, a_, 4}, {b_ + 40, a_ + 24, 4}}), ArgsOf(VGPU_OP_COPY_DEV, 3)) << "rows of slices";
  c.WidthInBytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpy3D_v2(&c));
  EXPECT_EQ(0u, Take(VGPU_OP_COPY_DEV).size());
}

TEST_F(ShimRows, LayoutsThatDoNotFitAreRefused) {
  const auto result = [this](void (*change)(CUDA_MEMCPY3D_st&)) {
    CUDA_MEMCPY3D_st c = Box();
    change(c);
    return cuMemcpy3D_v2(&c);
  };
  EXPECT_EQ(CUDA_SUCCESS, result([](CUDA_MEMCPY3D_st& c) { c.srcXInBytes = 2; })) << "ends where the row does";
  void (*const bad[])(CUDA_MEMCPY3D_st&) = {
      [](CUDA_MEMCPY3D_st& c) { c.srcXInBytes = 3; },
      [](CUDA_MEMCPY3D_st& c) { c.dstXInBytes = 5; },
      [](CUDA_MEMCPY3D_st& c) { c.srcPitch = 3; },
      [](CUDA_MEMCPY3D_st& c) { c.dstPitch = 3; },
      [](CUDA_MEMCPY3D_st& c) { c.srcLOD = 1; },
      [](CUDA_MEMCPY3D_st& c) { c.dstLOD = 1; },
      [](CUDA_MEMCPY3D_st& c) { c.srcMemoryType = 0; },
      [](CUDA_MEMCPY3D_st& c) { c.dstMemoryType = 5; },
      [](CUDA_MEMCPY3D_st& c) { c.srcPitch = ~size_t{0} / 2; },
      [](CUDA_MEMCPY3D_st& c) { c.srcZ = ~size_t{0} / 2; },
      [](CUDA_MEMCPY3D_st& c) { c.srcY = ~size_t{0} - 1, c.srcZ = 1; },
      [](CUDA_MEMCPY3D_st& c) { c.srcY = ~size_t{0} / 2; },
  };
  for (size_t i = 0; i < std::size(bad); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(bad[i])) << i;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, result([](CUDA_MEMCPY3D_st& c) { c.srcMemoryType = CU_MEMORYTYPE_ARRAY; }));
  EXPECT_EQ(CUDA_SUCCESS,
            result([](CUDA_MEMCPY3D_st& c) { c.srcPitch = c.srcXInBytes = 1, c.Height = 1, c.Depth = 1; }))
      << "one row has no pitch";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync_v2(nullptr, stream_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(nullptr, stream_));
}

TEST_F(ShimRows, RectanglesHaveBothOffsets) {
  CUDA_MEMCPY2D_st c{};
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = a_, c.srcPitch = 6, c.srcXInBytes = 1, c.srcY = 2;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.dstDevice = b_, c.dstPitch = 9, c.dstXInBytes = 3, c.dstY = 4;
  c.WidthInBytes = 5, c.Height = 2;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy2DAsync_v2(&c, stream_));
  EXPECT_EQ((Rows{{b_ + 39, a_ + 13, 5}, {b_ + 48, a_ + 19, 5}}), ArgsOf(VGPU_OP_COPY_DEV, 3));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy2DUnaligned_v2(&c));
  EXPECT_EQ(2u, Take(VGPU_OP_COPY_DEV).size());
}

class ShimLinear : public ShimCopy {
 protected:
  // 5 x 3 bytes, rows 16 bytes apart, and one that needs no padding.
  void SetUp() override {
    ShimCopy::SetUp();
    const CUDA_ARRAY_DESCRIPTOR_st padded{5, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const CUDA_ARRAY_DESCRIPTOR_st packed{16, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    ASSERT_EQ(CUDA_SUCCESS, cuArrayCreate_v2(&padded_, &padded));
    ASSERT_EQ(CUDA_SUCCESS, cuArrayCreate_v2(&packed_, &packed));
    ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(a_, host_.data(), 256));
    Take(VGPU_OP_COPY_IN);
  }
  CUarray padded_ = nullptr, packed_ = nullptr;
};

TEST_F(ShimLinear, BytesOfAnArrayGoRowByRow) {
  const uint64_t base = [&] {
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoA_v2(padded_, 0, a_, 1));
    return ArgsOf(VGPU_OP_COPY_DEV, 1).at(0).at(0);
  }();
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoA_v2(padded_, 3, a_ + 7, 9));
  EXPECT_EQ((Rows{{base + 3, a_ + 7, 2}, {base + 16, a_ + 9, 5}, {base + 32, a_ + 14, 2}}),
            ArgsOf(VGPU_OP_COPY_DEV, 3));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyAtoD_v2(b_, padded_, 4, 6));
  EXPECT_EQ((Rows{{b_, base + 4, 1}, {b_ + 1, base + 16, 5}}), ArgsOf(VGPU_OP_COPY_DEV, 3));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoA_v2(packed_, 3, a_, 40));
  EXPECT_EQ(1u, Take(VGPU_OP_COPY_DEV).size()) << "rows without padding are one piece";
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyAtoA_v2(padded_, 0, padded_, 8, 7));
  EXPECT_EQ((Rows{{base, base + 19, 2}, {base + 2, base + 32, 3}, {base + 16, base + 35, 2}}),
            ArgsOf(VGPU_OP_COPY_DEV, 3));
}

TEST_F(ShimLinear, BytesBeyondAnArrayAreRefused) {
  unsigned char* const h = host_.data();
  const CUresult good[] = {cuMemcpyHtoA_v2(padded_, 15, h, 0),
                           cuMemcpyHtoA_v2(padded_, 14, h, 1),
                           cuMemcpyAtoH_v2(h, padded_, 0, 15),
                           cuMemcpyAtoA_v2(padded_, 14, packed_, 47, 1),
                           cuMemcpyHtoAAsync_v2(padded_, 0, h, 15, stream_),
                           cuMemcpyAtoHAsync_v2(h, padded_, 0, 15, stream_)};
  for (size_t i = 0; i < std::size(good); ++i) EXPECT_EQ(CUDA_SUCCESS, good[i]) << i;
  const CUresult bad[] = {cuMemcpyHtoA_v2(padded_, 16, h, 0),          cuMemcpyHtoA_v2(padded_, 15, h, 1),
                          cuMemcpyAtoH_v2(h, padded_, 0, 16),          cuMemcpyAtoA_v2(padded_, 0, packed_, 47, 2),
                          cuMemcpyAtoA_v2(padded_, 15, packed_, 0, 1), cuMemcpyDtoA_v2(padded_, 8, a_, 8),
                          cuMemcpyAtoD_v2(a_, padded_, 8, 8)};
  for (size_t i = 0; i < std::size(bad); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, bad[i]) << i;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoA_v2(nullptr, 0, h, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMemcpyAtoA_v2(padded_, 0, nullptr, 0, 1));
}

TEST_F(ShimLinear, TheLastPieceOfASynchronousCopyIsWaitedFor) {
  std::vector<unsigned char> bytes(15);
  std::iota(bytes.begin(), bytes.end(), 40);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoA_v2(padded_, 0, bytes.data(), 15));
  std::vector<unsigned char> out(15);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyAtoH_v2(out.data(), padded_, 0, 15));
  EXPECT_EQ(bytes, out);
}

}  // namespace
