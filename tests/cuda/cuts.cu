// Kernels of many kinds that are cut as often as one likes; vgpu-launch cuts runs them (tests/cuda/launcher/cuts.cc).
// Each thread mixes what it has computed into its own word of `out`, so that one digest of `out` tells of all launches.
// `rounds` says how long a block takes. No kernel waits for another block.
#include <cstdint>

namespace {

constexpr unsigned kThreads = 64, kWide = 8;  // of a block: kThreads, or kWide x kWide

__device__ unsigned Hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

__device__ float Small(unsigned x) { return static_cast<float>(Hash(x) >> 16) * (1.0f / 65536.0f) - 0.5f; }

__device__ unsigned Index() { return blockIdx.x * kThreads + threadIdx.y * kWide + threadIdx.x; }

__device__ void Mix(unsigned* out, unsigned value) { out[Index()] = out[Index()] * 31u + value; }

__device__ __noinline__ unsigned Tree(unsigned depth, unsigned x) {
  if (depth == 0) return Hash(x);
  return Tree(depth - 1, 2 * x) + 3 * Tree(depth - 1, 2 * x + 1);
}

}  // namespace

// Matrix multiply with tiles in shared memory.
extern "C" __global__ void tiles(unsigned* out, unsigned rounds, unsigned seed) {
  __shared__ float a[kWide][kWide], b[kWide][kWide];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (unsigned tile = 0; tile < rounds; ++tile) {
    a[y][x] = Small(seed + Index() + tile * 977);
    b[y][x] = Small(seed * 3 + Index() + tile * 31);
    __syncthreads();
    for (unsigned k = 0; k < kWide; ++k) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  Mix(out, __float_as_uint(sum));
}

// Threads leave their loops at very different times.
extern "C" __global__ void steps(unsigned* out, unsigned rounds, unsigned seed) {
  unsigned all = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    unsigned long long x = (Hash(seed + round) & 1023) + Index() + 1;
    while (x != 1) {
      x = x % 2 == 0 ? x / 2 : 3 * x + 1;
      ++all;
    }
  }
  Mix(out, all);
}

// Each point becomes a mean of itself and its neighbours, in two arrays by turns.
extern "C" __global__ void heat(unsigned* out, unsigned rounds, unsigned seed) {
  __shared__ float old[kThreads + 2], now[kThreads + 2];
  const unsigned i = threadIdx.x + 1;
  old[i] = Small(seed + Index());
  if (i == 1) old[0] = now[0] = 1.0f, old[kThreads + 1] = now[kThreads + 1] = -1.0f;
  __syncthreads();
  for (unsigned round = 0; round < rounds; ++round) {
    now[i] = 0.25f * old[i - 1] + 0.5f * old[i] + 0.25f * old[i + 1];
    __syncthreads();
    old[i] = now[i] + 1e-6f * static_cast<float>(round);
    __syncthreads();
  }
  Mix(out, __float_as_uint(old[i]));
}

// Sums over a warp, which its threads hand to each other.
extern "C" __global__ void shuffles(unsigned* out, unsigned rounds, unsigned seed) {
  unsigned value = Hash(seed + Index());
  for (unsigned round = 0; round < rounds; ++round) {
    unsigned sum = value;
    for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    value = value * 5 + sum + round;
  }
  Mix(out, value);
}

// Counters in shared memory, added to those in device memory.
extern "C" __global__ void histogram(unsigned* out, unsigned rounds, unsigned seed) {
  __shared__ unsigned bins[kThreads];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned round = 0; round < rounds; ++round) atomicAdd(&bins[Hash(seed + Index() * 7919 + round) % kThreads], 1);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
  if (blockIdx.x != 0) Mix(out, bins[kThreads - 1 - threadIdx.x]);
}

// A function that calls itself.
extern "C" __global__ void calls(unsigned* out, unsigned rounds, unsigned seed) {
  unsigned all = 0;
  for (unsigned round = 0; round < rounds; ++round) all = all * 7 + Tree(3, seed + round + Index());
  Mix(out, all);
}

// Arrays in local memory, indexed by what was computed.
extern "C" __global__ void arrays(unsigned* out, unsigned rounds, unsigned seed) {
  unsigned words[12];
  for (unsigned i = 0; i < 12; ++i) words[i] = Hash(seed + Index() * 12 + i);
  unsigned x = seed;
  for (unsigned round = 0; round < rounds; ++round) {
    unsigned& word = words[x % 12];
    x = Hash(x ^ word);
    word += x >> 7;
  }
  for (const unsigned word : words) x = x * 33 + word;
  Mix(out, x);
}

// Both kinds of numbers with a point, with square roots and divisions.
extern "C" __global__ void doubles(unsigned* out, unsigned rounds, unsigned seed) {
  double x = 1.0 + Small(seed + Index());
  float y = 1.0f;
  for (unsigned round = 0; round < rounds; ++round) {
    x = 0.5 * (x + (2.0 + round) / x);
    y = sqrtf(y + static_cast<float>(x)) / 1.25f;
    x += y;
  }
  Mix(out, static_cast<unsigned>(__double_as_longlong(x)) ^ __float_as_uint(y));
}

// A tile is turned over, again and again.
extern "C" __global__ void transpose(unsigned* out, unsigned rounds, unsigned seed) {
  __shared__ unsigned tile[kWide][kWide + 1];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  unsigned value = Hash(seed + Index());
  for (unsigned round = 0; round < rounds; ++round) {
    tile[y][x] = value;
    __syncthreads();
    value = tile[x][y] * 3 + round;
    __syncthreads();
  }
  Mix(out, value);
}

// Bodies that attract each other, in tiles of a block.
extern "C" __global__ void bodies(unsigned* out, unsigned rounds, unsigned seed) {
  __shared__ float2 at[kThreads];
  float2 me = {Small(seed + Index()), Small(seed + Index() + 77)}, speed = {0, 0};
  for (unsigned round = 0; round < rounds; ++round) {
    at[threadIdx.x] = me;
    __syncthreads();
    for (unsigned other = 0; other < kThreads; ++other) {
      const float dx = at[other].x - me.x, dy = at[other].y - me.y;
      const float near = rsqrtf(dx * dx + dy * dy + 0.01f);
      speed.x += dx * near * near * near * 1e-4f;
      speed.y += dy * near * near * near * 1e-4f;
    }
    __syncthreads();
    me.x += speed.x * 0.01f;
    me.y += speed.y * 0.01f;
  }
  Mix(out, __float_as_uint(me.x) ^ Hash(__float_as_uint(me.y)));
}
