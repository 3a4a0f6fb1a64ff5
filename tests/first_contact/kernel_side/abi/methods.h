// SPDX-License-Identifier: Apache-2.0
// What programs write into the pushbuffers of a channel. Facts of NVIDIA's published class headers
// (github.com/NVIDIA/open-gpu-doc): classes/host/clc36f.h, clc46f.h (the same to Hopper), classes/dma-copy/clc5b5.h,
// clc8b5.h, classes/compute/clc5c0.h, clcbc0.h, clc5c0qmd.h (QMD 2.3), clcbc0qmd.h (QMD 3.0 and 4.0).
#pragma once

#include <cstdint>
#include <span>

namespace vgpud::kernel_side {

// USERD, a page by which a program and the host engine know how far a channel is: entries of its FIFO.
inline constexpr uint64_t kUserdGet = 0x88, kUserdPut = 0x8c;

// An entry of a FIFO: where a piece of a pushbuffer is.
struct FifoEntry {
  uint64_t value;
  uint64_t address() const { return (value & 0xff'ffff'fffc); }
  uint32_t words() const { return static_cast<uint32_t>(value >> 42 & 0x1f'ffff); }
};

// The first word of each group of methods.
struct MethodHeader {
  enum Kind : uint32_t { kOld = 0, kRising = 1, kSame = 3, kImmediate = 4, kRisingOnce = 5 };
  uint32_t value;
  Kind kind() const { return static_cast<Kind>(value >> 29); }
  uint32_t count() const { return value >> 16 & 0x1fff; }  // or the value of kImmediate
  uint32_t subchannel() const { return value >> 13 & 7; }
  uint32_t method() const { return (value & 0xfff) << 2; }
};
inline constexpr uint32_t kSubchannels = 8;

constexpr uint32_t Bits(uint32_t value, uint32_t high, uint32_t low) {
  return value >> low & ((2u << (high - low)) - 1);
}
constexpr uint64_t Wide(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

namespace host {
inline constexpr uint32_t kSetObject = 0x0, kSemaphoreA = 0x10, kSemaphoreB = 0x14, kSemaphoreC = 0x18,
                          kSemaphoreD = 0x1c, kNonStallInterrupt = 0x20, kSemAddressLow = 0x5c, kSemAddressHigh = 0x60,
                          kSemPayloadLow = 0x64, kSemPayloadHigh = 0x68, kSemExecute = 0x6c, kEnd = 0x100;
// The low byte of an operation of kSemExecute.
enum Operation : uint32_t { kAcquire, kRelease, kAcquireStrict, kAcquireCircular, kAcquireAnd, kAcquireNor, kReduce };
enum Reduction : uint32_t { kMin, kMax, kXor, kAnd, kOr, kAdd, kIncrement, kDecrement };
}  // namespace host

namespace copy {
inline constexpr uint32_t kSemaphoreHigh = 0x240, kSemaphoreLow = 0x244, kSemaphorePayload = 0x248, kLaunch = 0x300,
                          kInHigh = 0x400, kInLow = 0x404, kOutHigh = 0x408, kOutLow = 0x40c, kPitchIn = 0x410,
                          kPitchOut = 0x414, kLineLength = 0x418, kLineCount = 0x41c, kConstantA = 0x700,
                          kConstantB = 0x704, kComponents = 0x708;
// The shape of what is in blocks, from where its registers begin.
inline constexpr uint32_t kOutShape = 0x70c, kInShape = 0x728;
inline constexpr uint32_t kBlockSize = 0, kWidth = 4, kHeight = 8, kLayer = 0x10, kOrigin = 0x14;
enum Component : uint32_t { kSourceX, kSourceY, kSourceZ, kSourceW, kFromA, kFromB, kNoWrite };
}  // namespace copy

namespace compute {
inline constexpr uint32_t kLineLength = 0x180, kLineCount = 0x184, kOutHigh = 0x188, kOutLow = 0x18c, kPitchOut = 0x190,
                          kLaunchData = 0x1b0, kInlineData = 0x1b4, kDescriptorAddress = 0x2b4,
                          kSignalDescriptor = 0x2bc, kSignalDescriptor2 = 0x2c0, kInlineDescriptorHigh = 0x318,
                          kInlineDescriptorLow = 0x31c, kInlineDescriptor = 0x320, kReportHigh = 0x1b00,
                          kReportLow = 0x1b04, kReportPayload = 0x1b08, kReport = 0x1b0c;
inline constexpr uint32_t kDescriptorWords = 64;  // of a launch: QMD

// Where a launch descriptor says what is written when its kernel has ended.
struct ReleaseField {
  uint32_t enable_word, enable_bit;
  uint32_t size_word, size_low, size_high;  // 0: with the time
  uint32_t address_word;                    // low; the next one has the high bits
  uint32_t payload_word;
};
inline constexpr ReleaseField kReleases2[] = {{4, 10, 24, 31, 31, 23, 25}, {4, 11, 27, 31, 31, 26, 28}};
inline constexpr ReleaseField kReleases3[] = {
    {25, 23, 25, 30, 31, 24, 26}, {29, 23, 29, 30, 31, 28, 30}, {53, 23, 53, 30, 31, 52, 54}};
inline constexpr ReleaseField kReleases4[] = {
    {10, 0, 10, 1, 2, 20, 22}, {10, 16, 10, 17, 18, 24, 26}, {11, 0, 11, 1, 2, 28, 30}};
// By the major version of a descriptor, in word 18, bits 4 to 7.
inline constexpr uint32_t kVersionWord = 18;
struct DescriptorForm {
  uint32_t version;
  uint32_t grid_word;
  std::span<const ReleaseField> releases;
};
inline constexpr DescriptorForm kForms[] = {{2, 12, kReleases2}, {3, 12, kReleases3}, {4, 32, kReleases4}};
}  // namespace compute

}  // namespace vgpud::kernel_side
