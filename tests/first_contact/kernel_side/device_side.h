// SPDX-License-Identifier: Apache-2.0
// What is behind the device files: it passes each call on to the resource manager or to the one of unified memory, and
// lets the cards work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/first_contact/kernel_side/files/fuse_mount.h"
#include "tests/first_contact/kernel_side/rm/machine.h"
#include "tests/first_contact/kernel_side/rm/open_file.h"

namespace vgpud::kernel_side {

class DeviceSide : public DeviceFiles {
 public:
  explicit DeviceSide(Machine& machine);
  ~DeviceSide() override;

  void Opened(uint64_t file, size_t node) override;
  void Closed(uint64_t file) override;
  int Ioctl(IoctlCall& call) override;

  // One line of what a test wants ("lose 0"); the answer is one line, too.
  std::string Order(const std::string& line);

 private:
  int TellPlace(OpenFile& file, IoctlCall& call);
  void Work();

  Machine& machine_;
  std::mutex mutex_;
  std::condition_variable called_;
  bool ending_ = false;
  uint64_t calls_ = 0;
  std::map<uint64_t, OpenFile> files_;
  std::thread worker_;
};

}  // namespace vgpud::kernel_side
