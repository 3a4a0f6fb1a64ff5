// SPDX-License-Identifier: Apache-2.0
// The self-test that the CUDA runtime runs on a driver before its first call (cudaErrorSoftwareValidityNotEstablished
// when it fails), as far as a driver must answer it.
//
// Provenance: nothing here comes from NVIDIA code or documents. The construction is public: HMAC (RFC 2104) over MD2
// (RFC 1319), written from the two RFCs. The key, the constants and the order of the inputs are facts published by the
// projects ZLUDA, lupine and smolvm (Apache-2.0 / MIT) and confirmed by observing which answers the runtime accepts.
// Every input is this library's own true value. Whether to ship it is a decision for whoever distributes a build:
// `-Dcudart_handshake=false` leaves it out (then only programs that call the driver API directly can run).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vgpud::cuda {

using Digest = std::array<uint8_t, 16>;

// RFC 1319.
Digest Md2(std::span<const uint8_t> text);

// RFC 2104 with H = MD2, B = 16. `key` at most 16 bytes.
Digest HmacMd2(std::span<const uint8_t> key, std::span<const uint8_t> text);

struct HandshakeDevice {
  std::array<uint8_t, 16> uuid;
  int32_t pci_domain;
  int32_t pci_bus;
  int32_t pci_device;
};

struct HandshakeInput {
  uint32_t driver_version;
  uint32_t runtime_version;  // the runtime's first argument
  uint32_t pid;
  uint32_t thread;  // low half of pthread_self()
  uint64_t cudart_table;
  uint64_t integrity_table;
  uint64_t integrity_function;
  uint64_t unix_seconds;  // the runtime's second argument
  std::vector<HandshakeDevice> devices;
};

// What the runtime expects back.
Digest HandshakeAnswer(const HandshakeInput& input);

}  // namespace vgpud::cuda
