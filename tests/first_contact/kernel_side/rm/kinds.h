// SPDX-License-Identifier: Apache-2.0
// The classes of objects that can be made, a row each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tests/first_contact/kernel_side/rm/machine.h"

namespace vgpud::kernel_side {

struct Making {
  Machine& machine;
  Client& client;
  Object* parent;  // nullptr: the client itself
  const Caller& caller;
  std::span<std::byte> params;

  // The parameters, which are as many bytes as the row says.
  template <class T>
  T& As() const {
    return *reinterpret_cast<T*>(params.data());
  }
  Card* card() const { return parent == nullptr ? nullptr : parent->card; }
};

struct Kind {
  uint32_t id;
  size_t params_bytes;  // that it reads, or changes
  RmStatus (*make)(const Making& making, std::unique_ptr<Object>& made);
};

// nullptr: no such class.
const Kind* FindKind(uint32_t id);
// nullptr: `handle` is no address space, nor something that has one.
std::shared_ptr<AddressSpace> SpaceOf(const Client& client, uint32_t handle);

}  // namespace vgpud::kernel_side
