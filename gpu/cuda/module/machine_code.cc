// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/module/machine_code.h"

#include <elf.h>
#include <fmt/core.h>

#include <cstring>

#include "gpu/ptx/fatbin.h"

namespace vgpud::driver {
namespace {

// By the toolkits that write them: 7 up to CUDA 12.9, 8 from 13.0 on.
constexpr struct {
  int below;
  uint8_t newest;
} kAbis[] = {{13000, 7}, {14000, 8}};

}  // namespace

uint8_t NewestElfAbi(int driver_version) {
  for (const auto& row : kAbis)
    if (driver_version < row.below) return row.newest;
  return UINT8_MAX;
}

GpuResult<bool> HasTooNewCode(std::span<const std::byte> image, int driver_version) {
  const uint8_t newest = NewestElfAbi(driver_version);
  if (newest == UINT8_MAX) return false;
  if (image.size() < EI_NIDENT || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0)
    return TRY(ptx::MachineCodeAbi(image)).value_or(0) > newest;
  const auto abi = std::to_integer<uint8_t>(image[EI_ABIVERSION]);
  if (abi <= newest) return false;
  return GpuFail(
      CuStatus::kInvalidImage,
      fmt::format("machine code of ELF ABI {}, and the host's driver, of CUDA {}.{}, takes {} at most: build "
                  "with an older toolkit, or with PTX in the program",
                  abi, driver_version / 1000, driver_version % 1000 / 10, newest));
}

}  // namespace vgpud::driver
