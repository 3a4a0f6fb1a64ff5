// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "gpu/soft/code/program_fingerprint.h"
#include "gpu/soft/memory/pinned_blocks.h"
#include "gpu/soft/soft_module.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {
namespace {
// An entry of a fat binary, decompressed, is at most as long.
constexpr uint64_t kMaxPtx = uint64_t{512} << 20;
constexpr uint32_t kMaxParts = 1 << 16;
constexpr uint64_t kMaxName = 1 << 20;
}  // namespace

void SoftModule::Save(StateWriter& out) const {
  out.Put<uint32_t>(MustFit<uint32_t>(image_->texts.size()));
  for (const std::string& text : image_->texts) out.PutText(text);
  out.Put(most_registers_);
  out.Put(Fingerprint(*program_));
  out.Put<uint64_t>(globals_.size());
  for (const auto& [name, global] : globals_) {
    out.PutText(name);
    out.Put(global.address);
  }
}

GpuResult<std::unique_ptr<SoftModule>> SoftModule::Restore(StateReader& in, const Around& around,
                                                           PinnedBlocks& pinned) {
  const auto parts = in.GetUpTo<uint32_t>(kMaxParts, "number of parts of a module");
  std::vector<std::string> texts;
  for (uint32_t n = 0; n < parts && in.ok(); ++n) texts.push_back(in.GetText(kMaxPtx, "length of a module"));
  const auto most_registers = in.Get<uint32_t>();
  const auto fingerprint = in.Get<uint64_t>();
  std::map<std::string, GpuVa> places;
  const auto count = in.GetUpTo<uint64_t>(around.arena.bytes() / Arena::kGranule, "number of globals");
  for (uint64_t n = 0; n < count && in.ok(); ++n) {
    std::string name = in.GetText(kMaxName, "length of a global's name");
    places[std::move(name)] = GpuVa{in.Get<uint64_t>()};
  }
  if (!in.ok()) return in.error();
  const auto damaged = [](std::string_view what) {
    return GpuFail(CuStatus::kInvalidImage, fmt::format("saved context: {}", what));
  };
  auto image = around.images.Get(std::move(texts), around.table, around.what_for);
  if (!image) return damaged(image.error().text);
  std::unique_ptr<SoftModule> module(new SoftModule(std::move(*image), most_registers, around));
  const auto place = [&](const ptx::Variable& v) -> GpuResult<GpuVa> {
    const auto known = places.find(v.name);
    if (known == places.end() || !pinned.Take(known->second, std::max<uint64_t>(v.bytes, 1)))
      return damaged("it is not where its context says");
    return known->second;
  };
  if (auto r = module->Prepare(place); !r) return damaged(r.error().text);
  if (module->globals_.size() != places.size()) return damaged("a module has other globals than its context says");
  if (Fingerprint(*module->program_) != fingerprint)
    return GpuFail(CuStatus::kNotSupported,
                   "saved context: this build lays out the code of a module differently from the one that saved it; "
                   "use the same version to read it");
  return module;
}

}  // namespace vgpud::soft
