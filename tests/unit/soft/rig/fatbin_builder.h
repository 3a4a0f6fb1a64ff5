// SPDX-License-Identifier: Apache-2.0
// Builds fatbins for tests, byte by byte as docs/fatbin.md says.
#pragma once

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace vgpud {

inline constexpr uint64_t kFatbinLz4 = 0x2000;
inline constexpr uint64_t kFatbinZstd = 0x8000;

class FatbinBuilder {
 public:
  enum Kind : uint16_t { kPtx = 1, kElf = 2, kPart = 0x7670 };
  // Adds an entry; `flags` with kFatbinLz4 or kFatbinZstd compress it.
  FatbinBuilder& Add(Kind kind, uint32_t sm, std::string_view text, uint64_t flags = 0, uint32_t header_bytes = 64) {
    std::string payload(text);
    if ((flags & kFatbinZstd) != 0) {
      payload.resize(ZSTD_compressBound(text.size()));
      payload.resize(ZSTD_compress(payload.data(), payload.size(), text.data(), text.size(), 3));
    } else if ((flags & kFatbinLz4) != 0) {
      payload.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(text.size()))));
      payload.resize(static_cast<size_t>(LZ4_compress_default(
          text.data(), payload.data(), static_cast<int>(text.size()), static_cast<int>(payload.size()))));
    }
    const bool compressed = flags != 0;
    const auto exact = static_cast<uint32_t>(payload.size());
    payload.resize((payload.size() + 7) / 8 * 8);
    const size_t at = entries_.size();
    Put<uint16_t>(kind);
    Put<uint16_t>(0x0101);
    Put<uint32_t>(header_bytes);
    Put<uint64_t>(payload.size());
    Put<uint32_t>(compressed ? exact : 0);
    Put<uint32_t>(0);
    Put<uint32_t>(9u << 16);
    Put<uint32_t>(sm);
    Put<uint64_t>(0);
    Put<uint64_t>(flags | 0x11);
    Put<uint64_t>(0);
    Put<uint64_t>(compressed ? text.size() : 0);
    entries_.resize(at + header_bytes);
    entries_ += payload;
    return *this;
  }
  std::string Build() const {
    std::string out;
    const auto put = [&](const auto& value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(uint32_t{0xBA55ED50});
    put(uint16_t{1});
    put(uint16_t{16});
    put(uint64_t{entries_.size()});
    return out + entries_;
  }

 private:
  template <class T>
  void Put(T value) {
    entries_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string entries_;
};

}  // namespace vgpud
