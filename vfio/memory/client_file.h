// SPDX-License-Identifier: Apache-2.0
// Files in which clients of the host bring memory of their own.
#pragma once

#include <cstdint>

#include "base/foreign_fd.h"
#include "base/result.h"

namespace vgpud::vfio {

// Is `file` memory that has [offset, offset + bytes), and open for reading, and writing where `write`? Nothing is asked
// of a file system that could take its time with the answer. `what`: begins the text of an error.
//   EINVAL  no memfd or file of tmpfs or hugetlbfs, or shorter     EACCES  not open for that
[[nodiscard]] Result<void> CheckClientFile(const ForeignFd& file, uint64_t offset, uint64_t bytes, bool write,
                                           const char* what);

// The pages in which a file that CheckClientFile has taken can be mapped, in bytes: larger ones of hugetlbfs.
uint64_t PageOf(int file);

}  // namespace vgpud::vfio
