// SPDX-License-Identifier: Apache-2.0
// Calls of the driver for tests that need nothing of its memory and kernels: the linker, tensor maps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/unit/cuda/fake_memory.h"

namespace fake_cuda {

// What is linked becomes the text "linked", until it is forgotten.
Status LinkBegin(unsigned count, int* options, void** values, void** out);
Status LinkAdd(void*, int type, const void* data, size_t bytes, const char* name, unsigned, int*, void**);
Status LinkEnd(void*, void** code, size_t* bytes);
Status LinkForget(void*);
// A map is a text of what it was made of.
Status MakeMap(void* map, int type, unsigned rank, void* address, const uint64_t* size, const uint64_t*,
               const unsigned* box, const unsigned*, int, int swizzle, int, int);
Status MakeColumns(void* map, int, unsigned, void*, const uint64_t*, const uint64_t*, const int* lower,
                   const int* upper, unsigned of_pixel, unsigned pixels, const unsigned*, int, int, int, int fill);
Status MoveMap(void* map, void* address);

}  // namespace fake_cuda
