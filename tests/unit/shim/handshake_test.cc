// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/handshake.h"

#include <gtest/gtest.h>

#include <string>

namespace vgpud::cuda {
namespace {

std::string Hex(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}
std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct Vector {
  const char* text;
  const char* digest;
};

// RFC 1319, A.5.
TEST(Md2, AnswersTheVectorsOfTheRfc) {
  for (const Vector& v : {
           Vector{"", "8350e5a3e24c153df2275c9f80692773"},
           Vector{"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
           Vector{"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
           Vector{"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
           Vector{"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
           Vector{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "da33def2a42df13975352846c30338cd"},
           Vector{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                  "d5976f79d83d3a0dc9806c3c66f3efd8"},
       }) {
    EXPECT_EQ(v.digest, Hex(Md2(Bytes(v.text)))) << v.text;
  }
}

// RFC 2104, 2: H(K xor opad, H(K xor ipad, text)), written out.
TEST(HmacMd2, IsTheConstructionOfTheRfc) {
  const std::string key = "sixteen byte key";
  std::string inner, outer;
  for (const char c : key) {
    inner += static_cast<char>(c ^ 0x36);
    outer += static_cast<char>(c ^ 0x5c);
  }
  const Digest first = Md2(Bytes(inner + "what do ya want for nothing?"));
  outer.append(first.begin(), first.end());
  EXPECT_EQ(Hex(Md2(Bytes(outer))), Hex(HmacMd2(Bytes(key), Bytes("what do ya want for nothing?"))));
}

HandshakeInput Input() {
  HandshakeInput input{13000, 13002, 1234, 0x5678, 0x7f0000001000, 0x7f0000002000, 0x7f0000003000, 1700000000, {}};
  input.devices.push_back({{1, 2, 3}, 0, 3, 5});
  return input;
}

TEST(Handshake, AnswersTwoKindsOfVersionsWithFixedValues) {
  HandshakeInput input = Input();
  input.runtime_version = 13000;
  EXPECT_EQ("5c67cb031c184133e8d14c1faa83d38e", Hex(HandshakeAnswer(input)));
  input.runtime_version = 13001;
  EXPECT_EQ("5c67cb031c184118e8d14c1faa83d38e", Hex(HandshakeAnswer(input)));
}

TEST(Handshake, DependsOnEveryInput) {
  const std::string expected = Hex(HandshakeAnswer(Input()));
  EXPECT_EQ(expected, Hex(HandshakeAnswer(Input())));
  const std::vector<void (*)(HandshakeInput&)> changes = {
      [](HandshakeInput& i) { ++i.driver_version; },
      [](HandshakeInput& i) { i.runtime_version += 1; },
      [](HandshakeInput& i) { ++i.pid; },
      [](HandshakeInput& i) { ++i.thread; },
      [](HandshakeInput& i) { ++i.cudart_table; },
      [](HandshakeInput& i) { ++i.integrity_table; },
      [](HandshakeInput& i) { ++i.integrity_function; },
      [](HandshakeInput& i) { ++i.unix_seconds; },
      [](HandshakeInput& i) { ++i.devices[0].uuid[15]; },
      [](HandshakeInput& i) { ++i.devices[0].pci_domain; },
      [](HandshakeInput& i) { ++i.devices[0].pci_bus; },
      [](HandshakeInput& i) { ++i.devices[0].pci_device; },
      [](HandshakeInput& i) { i.devices.clear(); },
  };
  for (size_t c = 0; c < changes.size(); ++c) {
    HandshakeInput input = Input();
    changes[c](input);
    EXPECT_NE(expected, Hex(HandshakeAnswer(input))) << "change " << c;
  }
}

}  // namespace
}  // namespace vgpud::cuda
