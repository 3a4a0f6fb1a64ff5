// SPDX-License-Identifier: Apache-2.0
// What a video instruction says beside its opcode, packed into Inst::imm by the decoder.
#pragma once

#include <cstdint>

namespace vgpud::soft {

enum class VideoSecond : uint8_t { kNone, kAdd, kMin, kMax, kMerge };

// Places of 8 bits. A scalar selector: 0 = the word, 1 to 4 = byte 0 to 3, 5 and 6 = half 0 and 1. A SIMD selector: a
// nibble per part from the lowest, parts of b follow those of a; the mask has a bit per part.
struct VideoForm {
  uint32_t select_a = 0;
  uint32_t select_b = 0;
  uint8_t select_d = 0;  // the selector of d, or the mask
  bool signed_d = false;
  bool signed_a = false;
  bool signed_b = false;
  bool saturate = false;
  VideoSecond second = VideoSecond::kNone;
};

constexpr int64_t Pack(const VideoForm& f) {
  const auto bits = static_cast<uint64_t>(f.select_a) | static_cast<uint64_t>(f.select_b) << 16 |
                    static_cast<uint64_t>(f.select_d) << 32 | static_cast<uint64_t>(f.second) << 40 |
                    static_cast<uint64_t>(f.signed_d) << 48 | static_cast<uint64_t>(f.signed_a) << 49 |
                    static_cast<uint64_t>(f.signed_b) << 50 | static_cast<uint64_t>(f.saturate) << 51;
  return static_cast<int64_t>(bits);
}
constexpr VideoForm UnpackVideo(int64_t packed) {
  const auto v = static_cast<uint64_t>(packed);
  VideoForm f;
  f.select_a = v & 0xffff;
  f.select_b = v >> 16 & 0xffff;
  f.select_d = static_cast<uint8_t>(v >> 32);
  f.second = static_cast<VideoSecond>(v >> 40 & 0xff);
  f.signed_d = (v >> 48 & 1) != 0;
  f.signed_a = (v >> 49 & 1) != 0;
  f.signed_b = (v >> 50 & 1) != 0;
  f.saturate = (v >> 51 & 1) != 0;
  return f;
}

}  // namespace vgpud::soft
