// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/code/program.h"

#include <algorithm>
#include <cstring>

namespace vgpud::soft {

std::shared_ptr<Program> MakeProgram(std::shared_ptr<const ProgramCode> code, const std::vector<uint64_t>& addresses) {
  auto program = std::make_shared<Program>();
  program->code = code->code;
  program->origins = code->origins;
  program->call_sites = code->call_sites;
  program->extra = code->extra;
  for (const auto& f : code->functions) program->functions.push_back(std::make_unique<CodeFunction>(*f));
  // Aligned for the widest loads.
  program->constant_bytes.resize(code->constants.size() + kSlotAlign);
  const auto begin = reinterpret_cast<uintptr_t>(program->constant_bytes.data());
  program->constants = reinterpret_cast<std::byte*>((begin + kSlotAlign - 1) / kSlotAlign * kSlotAlign);
  std::copy(code->constants.begin(), code->constants.end(), program->constants);
  for (const AddressConstant& c : code->address_constants) {
    const uint64_t value = addresses[c.variable] + c.addend;
    for (uint32_t l = 0; l < kLanes; ++l)
      std::memcpy(program->constants + c.offset + l * c.lane_bytes, &value, c.lane_bytes);
  }
  program->shared = std::move(code);
  return program;
}

}  // namespace vgpud::soft
