// SPDX-License-Identifier: Apache-2.0
// CHECK: our own invariants. A broken one aborts this process; what guests, clients and files say wrong is an
// Error (base/result.h), never a CHECK.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(cond)                                                                     \
  do {                                                                                  \
    if (!(cond)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: invariant broken: %s\n", __FILE__, __LINE__, #cond); \
      std::abort();                                                                     \
    }                                                                                   \
  } while (false)
