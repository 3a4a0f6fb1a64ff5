// SPDX-License-Identifier: Apache-2.0
// Which devices a program in a guest has, and how many channels of each VF are open: after cuInit, and after it has
// asked for a context on each device that is named. usage: devices_probe [ORDINAL...]
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace {

void SayChannels() {
  std::printf("channels:");
  for (int i = 0; i < 16; ++i) {
    std::ifstream file("/sys/class/vgpu/vgpu" + std::to_string(i) + "/channels");
    if (std::string text; file >> text) std::printf(" %s", text.c_str());
  }
  std::printf("\n");
}

}  // namespace

int main(int count, char** words) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("cuInit: %d\n", cuInit(0));
  int devices = 0;
  std::printf("cuDeviceGetCount: %d\n", cuDeviceGetCount(&devices));
  std::printf("devices: %d\n", devices);
  for (int i = 0; i < devices; ++i) {
    char bus[32] = "";
    cuDeviceGetPCIBusId(bus, sizeof bus, i);
    std::printf("device %d: %s\n", i, bus);
  }
  SayChannels();
  for (int i = 1; i < count; ++i) {
    CUcontext context = nullptr;
    std::printf("context on %s: %d\n", words[i], cuDevicePrimaryCtxRetain(&context, std::atoi(words[i])));
  }
  SayChannels();
  return 0;
}
