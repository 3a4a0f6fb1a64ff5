// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/code/program_fingerprint.h"

#include <iterator>

#include "gpu/soft/state/checksum.h"

namespace vgpud::soft {
namespace {

void AddInst(Checksum& sum, const Program& program, const Inst& i) {
  for (const uint32_t offset : i.offset) sum.Add(offset);
  for (const uint8_t base : i.base) sum.Add(base);
  sum.Add(uint64_t{i.flags} << 8 | i.aux);
  sum.Add(static_cast<uint64_t>(i.imm));
  sum.Add(i.inner != nullptr);
  sum.Add(i.target == nullptr ? UINT64_MAX : static_cast<uint64_t>(i.target - program.code.data()));
}

void AddParams(Checksum& sum, const std::vector<ptx::Param>& params) {
  sum.Add(params.size());
  for (const ptx::Param& p : params) {
    sum.Add(p.offset);
    sum.Add(p.bytes);
  }
}

void AddFunction(Checksum& sum, const CodeFunction& f) {
  sum.Add(std::as_bytes(std::span(f.info.name)));
  for (const uint32_t v : {f.entry, f.frame_bytes, f.params_at, f.block_bytes, f.local_bytes, f.grid_area_bytes,
                           f.levels, f.local_total, f.shared_bytes, f.warp_specials})
    sum.Add(v);
  sum.Add(f.is_kernel);
  AddParams(sum, f.params);
  AddParams(sum, f.returns);
  for (const ParamSlot& s : f.param_slots) sum.Add(uint64_t{s.area_offset} << 32 | s.param_offset);
}

}  // namespace

uint64_t Fingerprint(const Program& program) {
  Checksum sum;
  sum.Add(program.code.size());
  for (const Inst& i : program.code) AddInst(sum, program, i);
  for (const Origin& o : program.origins) sum.Add(uint64_t{o.function} << 32 | o.line);
  for (const auto& f : program.functions) AddFunction(sum, *f);
  for (const uint32_t n : program.shared->call_order) sum.Add(n);
  for (const CallSite& site : program.call_sites) {
    sum.Add(uint64_t{site.caller} << 32 | site.callee);
    AddParams(sum, site.arguments);
    AddParams(sum, site.results);
  }
  for (const ExtraOperand& e : program.extra) sum.Add(uint64_t{e.offset} << 8 | e.base);
  return sum.value();
}

}  // namespace vgpud::soft
