// SPDX-License-Identifier: Apache-2.0
// kernel-side FOLDER VERSION CHIP CARDS: mounts a made-up kernel side of NVIDIA's driver at FOLDER, and says "ready".
// Then it takes orders from its input, a line each, and answers each with a line, until the input ends.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/log.h"
#include "tests/first_contact/kernel_side/abi/rm_layouts.h"
#include "tests/first_contact/kernel_side/device_side.h"

namespace vgpud::kernel_side {
namespace {

Result<void> Main(const std::string& folder, const std::string& version, const Chip& chip, uint32_t cards) {
  Store store = TRY(Store::Make());
  const auto mount = TRY(FuseMount::Make(folder, NodeNames(cards), store.file()));
  Machine machine(chip, cards, version, store, *mount);
  DeviceSide device(machine);
  mount->Start(device);
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) std::cout << device.Order(line) << std::endl;
  // What is mapped is written back when it is unmapped, here and in programs: nobody would answer while we end.
  mount->Abort();
  std::_Exit(0);
}

}  // namespace
}  // namespace vgpud::kernel_side

int main(int argc, char** argv) {
  using namespace vgpud;
  SetLogName("kernel-side");
  const auto* const chip = argc == 5 ? kernel_side::FindChip(argv[3]) : nullptr;
  const auto cards = argc == 5 ? std::strtoul(argv[4], nullptr, 10) : 0;
  if (chip == nullptr || cards == 0 || cards > kernel_side::kMostCardInfos) {
    fmt::print(stderr, "usage: kernel-side FOLDER VERSION t4|h100 CARDS\n");
    return 2;
  }
  const auto ended = kernel_side::Main(argv[1], argv[2], *chip, static_cast<uint32_t>(cards));
  LOG(kError, "{}", ended.error().context);
  return 1;
}
