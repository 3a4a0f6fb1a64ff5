// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/launcher/programs.h"

#include <cstdio>
#include <cstdlib>

#include "tests/cuda/launcher/session.h"
#include "tests/cuda/reference.h"

int RunVectorAdd(int, char**) {
  Session session("vectoradd");
  const unsigned n = 300007;
  std::vector<float> a(n), b(n);
  reference::FillMatrix(a, 1);
  reference::FillMatrix(b, 1000000);
  const DeviceArray<float> device_a(a), device_b(b), device_c(n);
  Launch(session.Kernel("vectoradd"), {.grid_x = (n + 255) / 256, .block_x = 256}, nullptr, device_a.address(),
         device_b.address(), device_c.address(), n);
  const std::vector<float> c = device_c.Read();
  size_t bad = 0;
  for (unsigned i = 0; i < n; ++i) bad += c[i] != a[i] + b[i];
  std::printf("vectoradd: %s n=%u wrong=%zu\n", bad == 0 ? "PASSED" : "FAILED", n, bad);
  return bad == 0 ? 0 : 1;
}

int RunMatMul(int argc, char** argv) {
  reference::MatMulShape s{};
  if (!reference::ParseMatMulShape(argc, argv, &s)) return 1;
  Session session("matmul");
  std::vector<float> a(static_cast<size_t>(s.m) * s.k), b(static_cast<size_t>(s.k) * s.n);
  reference::FillMatrix(a, 7);
  reference::FillMatrix(b, 77777777);
  const DeviceArray<float> device_a(a), device_b(b), device_c(static_cast<size_t>(s.m) * s.n);
  constexpr uint32_t kTile = reference::kMatMulTile;
  Launch(session.Kernel("matmul"), {.grid_x = s.n / kTile, .grid_y = s.m / kTile, .block_x = kTile, .block_y = kTile},
         nullptr, device_a.address(), device_b.address(), device_c.address(), s.n, s.k);
  return reference::ReportMatMul(a, b, device_c.Read(), s);
}

int RunEndless(int, char**) {
  Session session("endless");
  const DeviceArray<int> flag(1);
  DRIVER_CHECK(MemsetD8(flag.address(), 0, flag.bytes()));
  Launch(session.Kernel("endless"), {.grid_x = 4, .block_x = 64}, nullptr, flag.address());
  std::printf("endless: started\n");
  std::fflush(stdout);
  DRIVER_CHECK(CtxSynchronize());
  std::printf("endless: FAILED the kernel ended\n");
  return 1;
}

int RunLongBlocks(int argc, char** argv) {
  const uint32_t rounds = reference::LongRounds(argc, argv);
  Session session("longblocks");
  const DeviceArray<uint32_t> out(size_t{reference::kLongBlocks} * reference::kLongThreads);
  Launch(session.Kernel("longblocks"), {.grid_x = reference::kLongBlocks, .block_x = reference::kLongThreads}, nullptr,
         out.address(), rounds);
  return reference::ReportLongBlocks(out.Read(), rounds);
}
