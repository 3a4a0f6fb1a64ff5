// SPDX-License-Identifier: Apache-2.0
// The resource manager's objects: each has a parent, and goes with it; the highest is a client, which goes with the
// file that made it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/first_contact/kernel_side/engine/channel.h"
#include "tests/first_contact/kernel_side/memory/address_space.h"
#include "tests/first_contact/kernel_side/rm/chip.h"

namespace vgpud::kernel_side {

struct Card {
  const Chip* chip;
  uint32_t index;
  bool lost = false;
  uint64_t used_bytes = 0;

  uint32_t bus() const { return 0x65 + index; }
  uint32_t gpu_id() const { return bus() << 8; }
  uint64_t bytes() const { return chip->memory_kib << 10; }
  uint64_t free_bytes() const { return (uint64_t{ValueOf(chip->fb, kHeapFree)} << 10) - used_bytes; }
  std::vector<uint8_t> uuid() const { return std::vector<uint8_t>(16, static_cast<uint8_t>(0x11 * (index + 1))); }
  std::string uuid_text() const;
};

class Object {
 public:
  virtual ~Object() = default;
  uint32_t handle = 0, parent = 0, kind = 0;
  Card* card = nullptr;  // that it is of
};

// One of which nothing is asked but that it is there.
class PlainObject : public Object {};

class MemoryObject : public Object {
 public:
  ~MemoryObject() override {
    if (card != nullptr) card->used_bytes -= charged;
  }
  std::shared_ptr<Memory> memory;
  uint64_t charged = 0;  // of the card's
};

class VaSpace : public Object {
 public:
  std::shared_ptr<AddressSpace> space = std::make_shared<AddressSpace>();
};

// Addresses of a space that something will be mapped to.
class VirtualRange : public Object {
 public:
  uint32_t va_space = 0;
};

class ChannelGroup : public Object {
 public:
  uint32_t va_space = 0;
  uint32_t number = 0;
  uint64_t timeslice_us = 0;
};

class ContextShare : public Object {
 public:
  uint32_t va_space = 0;
};

class ChannelObject : public Object {
 public:
  std::unique_ptr<Channel> channel;
  uint32_t number = 0;  // of the channel on its card
};

class EventObject : public Object {
 public:
  uint64_t file = 0;     // that becomes readable
  bool of_work = false;  // that engines have done; else of what went wrong
};

class Client {
 public:
  explicit Client(uint32_t handle, uint64_t file) : handle_(handle), file_(file) {}

  uint32_t handle() const { return handle_; }
  uint64_t file() const { return file_; }
  Object* Find(uint32_t handle) const;
  template <class T>
  T* FindAs(uint32_t handle) const {
    return dynamic_cast<T*>(Find(handle));
  }
  // Its handle must be free.
  void Add(std::unique_ptr<Object> object);
  // It and all that it is a parent of, these first. False: there is none.
  bool Free(uint32_t handle);
  template <class T, class Do>
  void Each(Do run) {
    for (const auto& [handle, object] : objects_)
      if (auto* const wanted = dynamic_cast<T*>(object.get())) run(*wanted);
  }

 private:
  const uint32_t handle_;
  const uint64_t file_;
  std::map<uint32_t, std::unique_ptr<Object>> objects_;
};

}  // namespace vgpud::kernel_side
