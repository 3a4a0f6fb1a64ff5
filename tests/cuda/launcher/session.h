// SPDX-License-Identifier: Apache-2.0
// One CUDA context with one loaded PTX module, and device memory that frees itself.
#pragma once

#include <string_view>
#include <vector>

#include "tests/cuda/launcher/driver_api.h"

// A context on device 0 and the checked-in PTX of the program `name`, loaded.
class Session {
 public:
  explicit Session(std::string_view name);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  driver::Function Kernel(const char* name) const;

 private:
  driver::Device device_ = 0;
  driver::Context context_ = nullptr;
  driver::Module module_ = nullptr;
};

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) { DRIVER_CHECK(MemAlloc(&address_, count * sizeof(T))); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    DRIVER_CHECK(MemcpyHtoD(address_, values.data(), values.size() * sizeof(T)));
  }
  ~DeviceArray() { DRIVER_CHECK(MemFree(address_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  std::vector<T> Read() const {
    std::vector<T> values(count_);
    DRIVER_CHECK(MemcpyDtoH(values.data(), address_, count_ * sizeof(T)));
    return values;
  }
  driver::DevicePtr address() const { return address_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  size_t count_;
  driver::DevicePtr address_ = 0;
};

struct Shape {
  unsigned grid_x = 1, grid_y = 1;
  unsigned block_x = 1, block_y = 1;
};

// Launches with the arguments as they are: each must have exactly the type of the kernel's parameter.
template <class... Args>
void Launch(driver::Function kernel, Shape s, driver::Stream stream, Args... args) {
  void* pointers[] = {&args...};
  DRIVER_CHECK(LaunchKernel(kernel, s.grid_x, s.grid_y, 1, s.block_x, s.block_y, 1, 0, stream, pointers, nullptr));
}
