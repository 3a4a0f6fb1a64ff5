// SPDX-License-Identifier: Apache-2.0
// The controls of objects that are answered, a row each: by what they are asked of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/first_contact/kernel_side/rm/machine.h"

namespace vgpud::kernel_side {

struct Asking {
  Machine& machine;
  Client& client;
  Object* object;  // nullptr: the client itself
  const Caller& caller;
  uint32_t command;
  std::span<std::byte> params;

  // The parameters, which are at least as many bytes as the row says.
  template <class T>
  T& As() const {
    return *reinterpret_cast<T*>(params.data());
  }
  // Of whoever is asked for a card's; rows of a card are only asked of objects that have one.
  Card& card() const { return *object->card; }
  const Chip& chip() const { return *card().chip; }
};

struct Control {
  uint32_t command;
  size_t params_bytes;  // it needs at least
  RmStatus (*answer)(const Asking& asking);
};

// In client_controls.cc, card_controls.cc and channel_controls.cc.
std::span<const Control> ClientControls();
std::span<const Control> CardControls();
std::span<const Control> ChannelControls();

// Answers; a command that no table has is noted, and refused as not supported.
RmStatus AnswerControl(const Asking& asking);

}  // namespace vgpud::kernel_side
