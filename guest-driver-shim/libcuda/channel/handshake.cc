// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/handshake.h"

#include <algorithm>
#include <cstring>

namespace vgpud::cuda {
namespace {

constexpr size_t kBlock = 16;

// RFC 1319, 3.2: a permutation of 0..255 made from the digits of pi.
constexpr uint8_t kPi[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
    115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
    138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
    121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
    53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
    170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
    100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
    97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
    44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
    171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
    80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20};

constexpr uint8_t kKey[kBlock] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                  0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};
constexpr uint64_t kFixedLow[2] = {0x3341181c03cb675c, 0x1841181c03cb675c};  // for versions ending in 0 and 1
constexpr uint64_t kFixedHigh = 0x8ed383aa1f4cd1e8;

struct Md2State {
  uint8_t x[48] = {};

  void Block(const uint8_t* block) {
    for (size_t i = 0; i < kBlock; ++i) {
      x[16 + i] = block[i];
      x[32 + i] = static_cast<uint8_t>(block[i] ^ x[i]);
    }
    unsigned t = 0;
    for (unsigned round = 0; round < 18; ++round) {
      for (uint8_t& byte : x) {
        byte = static_cast<uint8_t>(byte ^ kPi[t]);
        t = byte;
      }
      t = (t + round) % 256;
    }
  }
};

template <class T>
void Append(std::vector<uint8_t>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

}  // namespace

Digest Md2(std::span<const uint8_t> text) {
  std::vector<uint8_t> padded(text.begin(), text.end());
  const size_t pad = kBlock - padded.size() % kBlock;
  padded.insert(padded.end(), pad, static_cast<uint8_t>(pad));

  uint8_t checksum[kBlock] = {};
  uint8_t last = 0;
  for (size_t at = 0; at < padded.size(); at += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) {
      checksum[i] = static_cast<uint8_t>(checksum[i] ^ kPi[padded[at + i] ^ last]);
      last = checksum[i];
    }
  }
  padded.insert(padded.end(), checksum, checksum + kBlock);

  Md2State state;
  for (size_t at = 0; at < padded.size(); at += kBlock) state.Block(&padded[at]);
  Digest digest;
  memcpy(digest.data(), state.x, digest.size());
  return digest;
}

Digest HmacMd2(std::span<const uint8_t> key, std::span<const uint8_t> text) {
  uint8_t block[kBlock] = {};
  memcpy(block, key.data(), key.size() < kBlock ? key.size() : kBlock);
  std::vector<uint8_t> inner(kBlock + text.size());
  std::array<uint8_t, kBlock + sizeof(Digest)> outer;
  for (size_t i = 0; i < kBlock; ++i) {
    inner[i] = block[i] ^ 0x36;
    outer[i] = block[i] ^ 0x5c;
  }
  std::copy(text.begin(), text.end(), inner.begin() + kBlock);
  const Digest digest = Md2(inner);
  std::copy(digest.begin(), digest.end(), outer.begin() + kBlock);
  return Md2(outer);
}

Digest HandshakeAnswer(const HandshakeInput& input) {
  const uint32_t kind = input.runtime_version % 10;
  if (kind < 2) {
    Digest fixed;
    memcpy(fixed.data(), &kFixedLow[kind], 8);
    memcpy(fixed.data() + 8, &kFixedHigh, 8);
    return fixed;
  }
  std::vector<uint8_t> text;
  Append(text, input.driver_version);
  Append(text, input.runtime_version);
  Append(text, input.pid);
  Append(text, input.thread);
  Append(text, input.cudart_table);
  Append(text, input.integrity_table);
  Append(text, input.integrity_function);
  Append(text, input.unix_seconds);
  for (const HandshakeDevice& device : input.devices) {
    Append(text, device.uuid);
    Append(text, device.pci_domain);
    Append(text, device.pci_bus);
    Append(text, device.pci_device);
  }
  return HmacMd2(kKey, text);
}

}  // namespace vgpud::cuda
