// SPDX-License-Identifier: Apache-2.0
// NVIDIA fat binaries: the container that nvcc puts into programs (layout: docs/fatbin.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu.h"

namespace vgpud::ptx {

// The PTX of the entry that suits a device of compute capability `sm` (75) best: the highest that it runs (target.h),
// of sm_90 and sm_90a the first. `image` is a fatbin (several concatenated ones are fine) or PTX text itself, which is
// returned as it is; one text comes back. Of a fatbin with parts that are to be linked (VGPU_FATBIN_KIND_PART): one
// text of each part that has any. Entries may be plain, LZ4 or zstd; all together decompress to at most 256 MiB.
// Errors: kInvalidImage (damaged, with where), kNoBinaryForGpu (no PTX entry <= sm; the text lists what is there).
[[nodiscard]] GpuResult<std::vector<std::string>> SelectPtx(std::span<const std::byte> image, uint32_t sm);

// The highest ELF ABI version (EI_ABIVERSION) of the machine code of a fatbin, of its parts too; 255 where it can't be
// told; nullopt: there is none. kInvalidImage: damaged, with where.
[[nodiscard]] GpuResult<std::optional<uint8_t>> MachineCodeAbi(std::span<const std::byte> image);

// One of several that are to be linked.
struct Part {
  std::span<const std::byte> fatbin;
  bool has_machine_code = false;  // beside PTX, or alone
  uint32_t most_registers = 0;    // of a thread, 0 = any
};
// Of `image`, which they point into; empty: it has none, or is no fatbin. kInvalidImage: damaged, with where.
[[nodiscard]] GpuResult<std::vector<Part>> PartsOf(std::span<const std::byte> image);

// The most registers of a thread that all of its parts allow, 0 = any. kInvalidImage: damaged, with where.
[[nodiscard]] GpuResult<uint32_t> MostRegisters(std::span<const std::byte> image);

}  // namespace vgpud::ptx
