// libFuzzer target: any bytes as a module image.
#include <cstdlib>

#include "gpu/soft/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto texts = vgpud::SelectPtx(std::as_bytes(std::span{data, size}), 75);
  if (!texts && texts.error().text.empty()) std::abort();
  return 0;
}
