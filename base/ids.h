// SPDX-License-Identifier: Apache-2.0
// Identities and address kinds that must not be mixed up.
#pragma once

#include <cstdint>
#include <type_traits>

namespace vgpud {

enum class VfId : uint32_t {};   // VF number on its GPU, from 0
enum class Iova : uint64_t {};   // address as the device (guest DMA) sees it
enum class GpuVa : uint64_t {};  // address as GPU kernels see it

template <class E>
constexpr auto Raw(E e) {
  return static_cast<std::underlying_type_t<E>>(e);
}

}  // namespace vgpud
