// SPDX-License-Identifier: Apache-2.0
// Copies and fills between addresses, in lines.
#include "tests/first_contact/kernel_side/engine/copy_engine.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/log.h"
#include "tests/first_contact/kernel_side/abi/methods.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint64_t kPiece = 1 << 20;

// Lines of bytes, one behind the other or in blocks: of 64 bytes by 8 lines, and of more of these below each other.
struct Lines {
  uint64_t base;
  uint64_t pitch;  // 0: in blocks, and of these:
  uint32_t block_height, block_depth, width, height, layer, x, y;

  // Calls piece(address, offset, bytes) for all parts of a line, of which each is in one piece. False: one was.
  template <class Piece>
  bool Each(uint64_t line, uint64_t bytes, Piece piece) const {
    if (pitch != 0) return piece(base + line * pitch, uint64_t{0}, bytes);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t part = std::min(kTogether - (x + done) % kTogether, bytes - done);
      if (!piece(base + PlaceOf(x + done, y + line), done, part)) return false;
      done += part;
    }
    return true;
  }

 private:
  static constexpr uint64_t kTogether = 16, kTileWidth = 64, kTileHeight = 8, kTileBytes = kTileWidth * kTileHeight;

  uint64_t PlaceOf(uint64_t at_x, uint64_t at_y) const {
    const uint64_t block_lines = kTileHeight * block_height;
    const uint64_t across = (width + kTileWidth - 1) / kTileWidth, down = (height + block_lines - 1) / block_lines;
    const uint64_t block = (layer / block_depth * down + at_y / block_lines) * across + at_x / kTileWidth;
    const uint64_t tile = layer % block_depth * block_height + at_y / kTileHeight % block_height;
    const uint64_t tx = at_x % kTileWidth, ty = at_y % kTileHeight;
    return (block * block_height * block_depth + tile) * kTileBytes + tx / 32 * 256 + ty / 2 * 64 + tx % 32 / 16 * 32 +
           ty % 2 * 16 + tx % kTogether;
  }
};

class CopyEngine : public Engine {
 public:
  using Engine::Engine;

 protected:
  Outcome Do(uint32_t method, uint32_t value) override {
    if (method != copy::kLaunch) return Outcome::kDone;
    if (Bits(value, 1, 0) != 0 && Transfer(value) == Outcome::kFault) return Outcome::kFault;
    const uint32_t semaphore = Bits(value, 4, 3);
    const uint64_t at = WideRegister(copy::kSemaphoreHigh, copy::kSemaphoreLow);
    const uint32_t payload = Register(copy::kSemaphorePayload);
    Outcome outcome = Outcome::kDone;
    if (semaphore != 0 && Bits(value, 19, 19) != 0)
      outcome = Reduce(at, Bits(value, 17, 14), payload, Bits(value, 18, 18) == 0);
    else if (semaphore != 0)
      outcome = Release(at, payload, semaphore == 2);
    if (Bits(value, 6, 5) != 0) surroundings().Interrupt();
    return outcome;
  }

 private:
  Outcome Transfer(uint32_t value) {
    const uint64_t count = Bits(value, 9, 9) != 0 ? Register(copy::kLineCount) : 1;
    const bool remapped = Bits(value, 10, 10) != 0;
    const Lines in = LinesOf(WideRegister(copy::kInHigh, copy::kInLow), Register(copy::kPitchIn),
                             Bits(value, 7, 7) != 0, copy::kInShape);
    const Lines out = LinesOf(WideRegister(copy::kOutHigh, copy::kOutLow), Register(copy::kPitchOut),
                              Bits(value, 8, 8) != 0, copy::kOutShape);
    LOG(kDebug, "copy {:x} to {:x}, {} in {} lines, how {:x} {:x}", in.base, out.base, Register(copy::kLineLength),
        count, value, Register(copy::kComponents));
    if (remapped && (in.pitch == 0 || out.pitch == 0)) return Outcome::kFault;
    for (uint64_t line = 0; line < count; ++line) {
      const Outcome outcome =
          remapped ? RemapLine(in.base + line * in.pitch, out.base + line * out.pitch) : CopyLine(in, out, line);
      if (outcome != Outcome::kDone) return outcome;
    }
    return Outcome::kDone;
  }

  Lines LinesOf(uint64_t base, uint32_t pitch, bool is_pitch, uint32_t shape) const {
    if (is_pitch) return {base, std::max<uint32_t>(pitch, 1), 1, 1, 0, 0, 0, 0, 0};
    const uint32_t block = Register(shape + copy::kBlockSize), origin = Register(shape + copy::kOrigin);
    return {base,
            0,
            1u << Bits(block, 7, 4),
            1u << Bits(block, 11, 8),
            Register(shape + copy::kWidth),
            Register(shape + copy::kHeight),
            Register(shape + copy::kLayer),
            origin & 0xffff,
            origin >> 16};
  }

  Outcome CopyLine(const Lines& in, const Lines& out, uint64_t line) {
    std::vector<std::byte> bytes(Register(copy::kLineLength));
    const auto read = [&](uint64_t at, uint64_t offset, uint64_t length) {
      return space().Read(at, std::span(bytes).subspan(offset, length));
    };
    const auto write = [&](uint64_t at, uint64_t offset, uint64_t length) {
      return space().Write(at, std::span(bytes).subspan(offset, length));
    };
    const bool done = in.Each(line, bytes.size(), read) && out.Each(line, bytes.size(), write);
    return done ? Outcome::kDone : Outcome::kFault;
  }

  // Elements of up to four components, each from the source or a constant.
  Outcome RemapLine(uint64_t from, uint64_t to) {
    const uint32_t how = Register(copy::kComponents);
    const uint32_t bytes = Bits(how, 17, 16) + 1, sources = Bits(how, 21, 20) + 1, targets = Bits(how, 25, 24) + 1;
    const uint32_t constants[] = {Register(copy::kConstantA), Register(copy::kConstantB)};
    const uint64_t elements = Register(copy::kLineLength);
    bool reads = false, keeps = false;
    for (uint32_t t = 0; t < targets; ++t) {
      reads = reads || Bits(how, 4 * t + 2, 4 * t) <= copy::kSourceW;
      keeps = keeps || Bits(how, 4 * t + 2, 4 * t) == copy::kNoWrite;
    }
    const uint64_t in_bytes = uint64_t{bytes} * sources, out_bytes = uint64_t{bytes} * targets;
    const uint64_t at_once = std::max<uint64_t>(1, kPiece / out_bytes);
    std::vector<std::byte> in, out;
    for (uint64_t done = 0; done < elements; done += at_once) {
      const uint64_t count = std::min(at_once, elements - done);
      in.resize(reads ? count * in_bytes : 0);
      out.resize(count * out_bytes);
      if (reads && !space().Read(from + done * in_bytes, in)) return Outcome::kFault;
      if (keeps && !space().Read(to + done * out_bytes, out)) return Outcome::kFault;
      for (uint64_t i = 0; i < count; ++i)
        for (uint32_t t = 0; t < targets; ++t) {
          const uint32_t what = Bits(how, 4 * t + 2, 4 * t);
          std::byte* const target = &out[i * out_bytes + uint64_t{t} * bytes];
          if (what <= copy::kSourceW)
            std::memcpy(target, &in[i * in_bytes + uint64_t{what % sources} * bytes], bytes);
          else if (what != copy::kNoWrite)
            std::memcpy(target, &constants[what == copy::kFromA ? 0 : 1], bytes);
        }
      if (!space().Write(to + done * out_bytes, out)) return Outcome::kFault;
    }
    return Outcome::kDone;
  }
};

}  // namespace

std::unique_ptr<Engine> MakeCopyEngine(Surroundings& surroundings) {
  return std::make_unique<CopyEngine>(surroundings);
}

}  // namespace vgpud::kernel_side
