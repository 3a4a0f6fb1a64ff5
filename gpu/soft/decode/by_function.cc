// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/by_function.h"

#include <algorithm>
#include <set>

#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/decode/decoder.h"

namespace vgpud::soft {
namespace {

constexpr size_t kLeastBytes = 256 << 10;
// Each reading passes all headers.
constexpr size_t kMostFunctions = 8192;
// Of chains of calls; for what goes deeper all functions are read, then all kernels, too.
constexpr int kMostReadings = 8;

// What a kernel can come to.
struct Reach {
  std::set<std::string, std::less<>> names;
  bool all_functions = false;  // it calls through a pointer
  bool all = false;            // it launches kernels

  bool Has(const ptx::Function& f) const { return all || (all_functions && !f.is_kernel) || names.count(f.name) != 0; }
  void Take(const ptx::Operand& o) {
    if (o.kind == ptx::Operand::Kind::kFunction) {
      names.emplace(o.name);
      const ExternFunction* provided = FindExternFunction(o.name);
      all |= provided != nullptr && provided->uses == ExternFunction::Uses::kLaunches;
    }
    for (const ptx::Operand& element : o.elements) Take(element);
  }
  void Take(const ptx::Function& f) {
    for (const ptx::Instruction& i : f.code) {
      for (const ptx::Operand& o : i.operands) Take(o);
      all_functions |= i.opcode == "call" &&
                       std::any_of(i.operands.begin(), i.operands.end(),
                                   [](const ptx::Operand& o) { return o.kind == ptx::Operand::Kind::kRegister; });
    }
  }
};

}  // namespace

GpuResult<std::unique_ptr<Headers>> ReadHeaders(const std::string& text) {
  if (text.size() < kLeastBytes) return std::unique_ptr<Headers>();
  auto module = ptx::Parse(text, {[](std::string_view) { return false; }});
  if (!module) return tl::unexpected(std::move(module).error());
  if ((*module)->functions.size() > kMostFunctions) return std::unique_ptr<Headers>();
  auto headers = std::make_unique<Headers>();
  for (const auto& f : (*module)->functions)
    if (f->is_left_out) headers->ends[f->places.body_open] = {f->places.body_close, f->places.body_close_line};
  headers->module = std::move(*module);
  return headers;
}

GpuResult<std::shared_ptr<const ProgramCode>> DecodeKernel(const std::string& text, const ptx::BodyEnds& ends,
                                                           std::string_view kernel, const OpTable& table,
                                                           DecodeFor what_for, uint64_t* read) {
  Reach reach;
  reach.all = kernel.empty();
  reach.names.emplace(kernel);
  for (int reading = 1;; ++reading) {
    reach.all_functions |= reading == kMostReadings;
    reach.all |= reading == 2 * kMostReadings;
    const auto wants = [&](std::string_view name) { return reach.all || reach.names.count(name) != 0; };
    auto module = ptx::Parse(text, {wants, &ends});
    if (!module) return tl::unexpected(std::move(module).error());
    bool complete = true;
    for (const auto& f : (*module)->functions) {
      if (f->code.empty()) continue;
      *read += f->places.body_close - f->places.body_open;
      reach.Take(*f);
    }
    for (const auto& f : (*module)->functions) {
      if (!f->is_left_out || !reach.Has(*f)) continue;
      reach.names.emplace(f->name);
      complete = false;
    }
    if (complete) return Decode(**module, table, what_for);
  }
}

}  // namespace vgpud::soft
