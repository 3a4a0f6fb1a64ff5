// SPDX-License-Identifier: Apache-2.0
// What the kernels must compute, on the CPU, bit for bit. Shared by the CUDA programs and the driver-API launcher.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace reference {

inline uint32_t Hash(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

// A float in [-1, 1) with a full mantissa.
inline float RandomFloat(uint32_t seed) { return static_cast<float>(Hash(seed) >> 8) * (1.0f / 8388608.0f) - 1.0f; }

inline uint64_t Fnv1a(const void* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  return hash;
}

// --- matmul: C[m x n] = A[m x k] * B[k x n], row major, products summed in the order of k with one rounding each ---
struct MatMulShape {
  uint32_t m, n, k;  // multiples of kMatMulTile
};
inline constexpr uint32_t kMatMulTile = 16;

inline void FillMatrix(std::vector<float>& matrix, uint32_t seed) {
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = RandomFloat(seed + static_cast<uint32_t>(i));
}

inline float MatMulElement(const std::vector<float>& a, const std::vector<float>& b, MatMulShape s, uint32_t row,
                           uint32_t column) {
  float sum = 0.0f;
  for (uint32_t i = 0; i < s.k; ++i)
    sum = std::fmaf(a[static_cast<size_t>(row) * s.k + i], b[static_cast<size_t>(i) * s.n + column], sum);
  return sum;
}

// Elements of `c` that are not bit-equal to what they must be, among every `stride`-th one.
inline size_t MatMulMismatches(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c,
                               MatMulShape s, size_t stride) {
  size_t bad = 0;
  for (size_t i = 0; i < c.size(); i += stride) {
    const float expected = MatMulElement(a, b, s, static_cast<uint32_t>(i / s.n), static_cast<uint32_t>(i % s.n));
    bad += std::memcmp(&expected, &c[i], sizeof expected) != 0;
  }
  return bad;
}

// Reads [M N K]; false after printing what is wrong.
inline bool ParseMatMulShape(int argc, char** argv, MatMulShape* s) {
  *s = {192, 128, 160};
  if (argc == 4)
    *s = {static_cast<uint32_t>(std::atoi(argv[1])), static_cast<uint32_t>(std::atoi(argv[2])),
          static_cast<uint32_t>(std::atoi(argv[3]))};
  const auto is_good = [](uint32_t extent) { return extent != 0 && extent % kMatMulTile == 0; };
  if ((argc == 1 || argc == 4) && is_good(s->m) && is_good(s->n) && is_good(s->k)) return true;
  std::printf("matmul: FAILED usage: matmul [M N K], multiples of %u\n", kMatMulTile);
  return false;
}

// Compares, prints the verdict, returns the exit status. Large products are compared by sample: the CPU would take
// minutes. `checksum` names all bits of the result, so that two runs can be compared.
inline int ReportMatMul(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c,
                        MatMulShape s) {
  const uint64_t products = static_cast<uint64_t>(s.m) * s.n * s.k;
  const size_t stride = products > 8'000'000 ? static_cast<size_t>(products / 4'000'000) | 1 : 1;
  const size_t bad = MatMulMismatches(a, b, c, s, stride);
  std::printf("matmul: %s m=%u n=%u k=%u wrong=%zu checksum=%016llx\n", bad == 0 ? "PASSED" : "FAILED", s.m, s.n, s.k,
              bad, static_cast<unsigned long long>(Fnv1a(c.data(), c.size() * sizeof(float))));
  return bad == 0 ? 0 : 1;
}

// --- meter: every thread of a unit advances its own xorshift state, every block counts itself once ---
inline constexpr uint32_t kMeterBlocks = 8;
inline constexpr uint32_t kMeterThreads = 128;
inline constexpr uint32_t kMeterLanes = kMeterBlocks * kMeterThreads;

inline uint32_t MeterSeed(uint32_t stream, uint32_t lane) { return Hash(stream * kMeterLanes + lane + 1) | 1; }
inline uint32_t MeterSteps(uint32_t state, uint64_t steps) {
  for (uint64_t i = 0; i < steps; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    state += 0x9e3779b9u;
  }
  return state;
}

// --- longblocks: the threads of a block compute by themselves, and tell a neighbour now and then ---
inline constexpr uint32_t kLongBlocks = 3;
inline constexpr uint32_t kLongThreads = 96;
inline constexpr uint32_t kLongTurn = 64;  // rounds between two meetings
inline constexpr uint32_t kLongLast = 8;   // words that a thread remembers

inline uint32_t LongRounds(int argc, char** argv) {
  return argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 20000;
}

inline std::vector<uint32_t> LongBlock(uint32_t block, uint32_t rounds) {
  std::vector<uint32_t> x(kLongThreads), told(kLongThreads), last(kLongThreads * kLongLast);
  for (uint32_t t = 0; t < kLongThreads; ++t) {
    x[t] = block * kLongThreads + t + 1;
    for (uint32_t w = 0; w < kLongLast; ++w) last[t * kLongLast + w] = x[t] - 1;
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t t = 0; t < kLongThreads; ++t) {
      const uint32_t next = x[t] * 1664525u + 1013904223u;
      uint32_t& word = last[t * kLongLast + (next >> 29)];
      word = x[t] = next ^ word >> 3;
    }
    if (round % kLongTurn != kLongTurn - 1) continue;
    told = x;
    for (uint32_t t = 0; t < kLongThreads; ++t) x[t] += told[(t + 1) % kLongThreads];
  }
  return x;
}

inline int ReportLongBlocks(const std::vector<uint32_t>& out, uint32_t rounds) {
  size_t bad = 0;
  for (uint32_t block = 0; block < kLongBlocks; ++block) {
    const std::vector<uint32_t> x = LongBlock(block, rounds);
    for (uint32_t t = 0; t < kLongThreads; ++t) bad += out[block * kLongThreads + t] != x[t];
  }
  std::printf("longblocks: %s rounds=%u wrong=%zu checksum=%016llx\n", bad == 0 ? "PASSED" : "FAILED", rounds, bad,
              static_cast<unsigned long long>(Fnv1a(out.data(), out.size() * sizeof(uint32_t))));
  return bad == 0 ? 0 : 1;
}

}  // namespace reference
