// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/object.h"

#include <fmt/core.h>

#include <utility>

namespace vgpud::kernel_side {

std::string Card::uuid_text() const {
  std::string text = "GPU-";
  for (size_t i = 0; const uint8_t byte : uuid()) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", byte);
    ++i;
  }
  return text;
}

Object* Client::Find(uint32_t handle) const {
  const auto it = objects_.find(handle);
  return it == objects_.end() ? nullptr : it->second.get();
}

void Client::Add(std::unique_ptr<Object> object) {
  const uint32_t handle = object->handle;
  objects_[handle] = std::move(object);
}

bool Client::Free(uint32_t handle) {
  if (Find(handle) == nullptr) return false;
  std::vector<uint32_t> children;
  for (const auto& [other, object] : objects_)
    if (object->parent == handle && other != handle) children.push_back(other);
  for (const uint32_t child : children) Free(child);
  objects_.erase(handle);
  return true;
}

}  // namespace vgpud::kernel_side
