// libFuzzer target: any bytes as a module image.
#include <cstdlib>

#include "gpu/soft/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = vgpud::SelectPtx(std::as_bytes(std::span{data, size}), 75);
  if (!text && text.error().text.empty()) std::abort();
  return 0;
}
