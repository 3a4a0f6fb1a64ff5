// libFuzzer target: any bytes as PTX text.
#include <cstdlib>

#include "gpu/soft/ptx_parser.h"
#include "tests/unit/soft/ptx_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto module = vgpud::ptx::Parse({reinterpret_cast<const char*>(data), size});
  if (module && !vgpud::ptx::BrokenInvariant(**module).empty()) std::abort();
  if (!module && module.error().text.empty()) std::abort();
  return 0;
}
