// SPDX-License-Identifier: Apache-2.0
// Textures on the soft GPU in tests: images with known texels, and kernels that read or write one texel per thread.
#pragma once

#include <algorithm>
#include <array>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {

using Address = TextureDesc::Address;
using Shape = TextureDesc::Shape;
using Quad = std::array<uint32_t, 4>;

template <class To, class From>
To BitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline Quad Floats(float x, float y = 0, float z = 0, float w = 0) {
  return {BitsAs<uint32_t>(x), BitsAs<uint32_t>(y), BitsAs<uint32_t>(z), BitsAs<uint32_t>(w)};
}

// Rows and slices with padding behind them, so that a mistake in either shows.
class TextureMachine : public SoftMachine {
 public:
  using SoftMachine::SoftMachine;
  struct Image {
    GpuVa address;
    uint64_t pitch;
    uint64_t slice;
  };
  // `texels`: x fastest, then y, then z; T is one texel.
  template <class T>
  Image Upload3(const std::vector<T>& texels, uint32_t width, uint32_t height = 1, uint32_t slices = 1) {
    Image image{{}, width * sizeof(T) + (height > 1 ? 4 * sizeof(T) : 0), 0};
    image.slice = image.pitch * height + (slices > 1 ? 8 * sizeof(T) : 0);
    std::vector<std::byte> bytes(image.slice * slices, std::byte{0xee});
    for (size_t n = 0; n < texels.size(); ++n)
      std::memcpy(
          bytes.data() + n % width * sizeof(T) + n / width % height * image.pitch + n / width / height * image.slice,
          &texels[n], sizeof(T));
    image.address = Upload(bytes);
    return image;
  }
  static void Put(TextureDesc& desc, const Image& image) {
    desc.levels.push_back({image.address, image.pitch, image.slice});
  }
  uint64_t Make(const TextureDesc& desc) {
    const auto handle = gpu.CreateTexture(desc);
    EXPECT_TRUE(handle) << (handle ? "" : handle.error().text);
    return handle ? *handle : 0;
  }
  // One thread per element of `in`, whose words are in %r1..%r4 (and, of the next four, %r5..%r8); %rd1 is the handle.
  // What `body` leaves in %r10..%r13 is the answer. %rd9 is scratch memory of 64 bytes per thread.
  std::vector<Quad> Each(uint64_t handle, const std::string& body, const std::vector<Quad>& in,
                         Outcome* outcome = nullptr, const std::vector<Quad>& more = {}, uint64_t budget = UINT64_MAX) {
    const Outcome loaded = LoadBody(
        ".param .u64 tex, .param .u64 in, .param .u64 more, .param .u64 out, .param .u32 n",
        "ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [in]; ld.param.u64 %rd3, [more]; ld.param.u64 %rd4, [out];\n"
        "mov.u32 %r30, %ctaid.x; mov.u32 %r31, %tid.x; mad.lo.u32 %r31, %r30, 64, %r31;\n"
        "ld.param.u32 %r32, [n]; setp.ge.u32 %p1, %r31, %r32; @%p1 exit;\n"
        "mul.wide.u32 %rd5, %r31, 16; add.u64 %rd6, %rd2, %rd5; add.u64 %rd7, %rd3, %rd5; add.u64 %rd8, %rd4, %rd5;\n"
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd6]; ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd7];\n"
        "mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;\n" +
            body + "\nst.global.v4.u32 [%rd8], {%r10, %r11, %r12, %r13};");
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    if (loaded.status != CuStatus::kSuccess) return {};
    std::vector<Quad> second = more;
    second.resize(in.size());
    const GpuVa at = Upload(in);
    const GpuVa also = Upload(second);
    const GpuVa out = Alloc(in.size() * sizeof(Quad));
    const auto blocks = static_cast<uint32_t>((in.size() + 63) / 64);
    const Outcome ran =
        Run("k", {{blocks, 1, 1}, {64, 1, 1}, 0},
            Params().Add(handle).Add(at).Add(also).Add(out).Add(static_cast<uint32_t>(in.size())), budget);
    if (outcome != nullptr) {
      *outcome = ran;
    } else {
      EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    }
    return Download<Quad>(out, in.size());
  }
};

}  // namespace vgpud::soft
