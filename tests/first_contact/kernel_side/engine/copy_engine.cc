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
    const uint64_t in = WideRegister(copy::kInHigh, copy::kInLow), out = WideRegister(copy::kOutHigh, copy::kOutLow);
    const uint64_t lines = Bits(value, 9, 9) != 0 ? Register(copy::kLineCount) : 1;
    const bool remapped = Bits(value, 10, 10) != 0;
    LOG(kDebug, "copy {:x} to {:x}, {} in {} lines, how {:x} {:x}", in, out, Register(copy::kLineLength), lines, value,
        Register(copy::kComponents));
    for (uint64_t line = 0; line < lines; ++line) {
      const uint64_t from = in + line * Register(copy::kPitchIn), to = out + line * Register(copy::kPitchOut);
      const Outcome outcome = remapped ? RemapLine(from, to) : CopyLine(from, to, Register(copy::kLineLength));
      if (outcome != Outcome::kDone) return outcome;
    }
    return Outcome::kDone;
  }

  Outcome CopyLine(uint64_t from, uint64_t to, uint64_t bytes) {
    std::vector<std::byte> piece(std::min(bytes, kPiece));
    for (uint64_t done = 0; done < bytes; done += piece.size()) {
      piece.resize(std::min(bytes - done, kPiece));
      if (!space().Read(from + done, piece) || !space().Write(to + done, piece)) return Outcome::kFault;
    }
    return Outcome::kDone;
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
