// SPDX-License-Identifier: Apache-2.0
// The golden tests on the soft GPU, each instruction set that this CPU has.
#include "tests/golden/soft_golden.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/golden/soft_golden_object.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

// The lowest one that has the form.
const ComputeCapability& CapabilityFor(const golden::Form& f) {
  for (const ComputeCapability& c : kComputeCapabilities)
    if (c.number >= f.needs) return c;
  return kDefaultCapability;
}

std::string Evaluate(Isa isa, const golden::Form& f) {
  SoftMachine m(isa, 16 << 20, 1, CapabilityFor(f));
  const Outcome loaded = m.Load(golden::PtxOf(f));
  if (loaded.status != CuStatus::kSuccess) return "  " + f.name + ": " + loaded.text + "\n";
  const uint32_t blocks = golden::BlocksOf(f);
  const size_t threads = size_t{blocks} * f.block;
  const GpuVa in = m.Upload(golden::InputOf(f));
  const GpuVa out = m.Alloc(threads * (f.out.size() + 1) * 8);
  const GpuVa memory = m.Alloc(threads * golden::kPrivateBytes);
  std::optional<GoldenObject> object;
  if (f.object) object.emplace(m, *f.object);
  const Outcome ran = m.Run("golden", {{blocks, 1, 1}, {f.block, 1, 1}, 0},
                            Params().Add(in).Add(out).Add(memory).Add(object ? object->handle() : 0));
  if (ran.status != CuStatus::kSuccess) return "  " + f.name + ": " + ran.text + "\n";
  std::string wrong = golden::Compare(f, m.Download<uint64_t>(out, threads * f.out.size()));
  if (f.object && !f.object->after.empty()) wrong += golden::CompareObject(f, object->Texels());
  return wrong;
}

using Parameter = std::tuple<Isa, const char*>;
class Golden : public testing::TestWithParam<Parameter> {};

TEST_P(Golden, EveryFormGivesItsValues) {
  const char* only = std::getenv("GOLDEN_FORM");
  for (const golden::Form& f : GoldenForms(std::get<1>(GetParam()))) {
    if (only != nullptr && f.name != only) continue;
    const std::string wrong = Evaluate(std::get<0>(GetParam()), f);
    if (!wrong.empty()) ADD_FAILURE() << "\n" << wrong << (only != nullptr ? golden::PtxOf(f) : "");
  }
}

INSTANTIATE_TEST_SUITE_P(, Golden, testing::Combine(testing::ValuesIn(AvailableIsas()), testing::Values(GOLDEN_FILES)),
                         [](const auto& p) {
                           return std::string(std::get<1>(p.param)) + "_" + NameOf(std::get<0>(p.param));
                         });

}  // namespace
}  // namespace vgpud::soft
