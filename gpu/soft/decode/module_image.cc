// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/module_image.h"

#include <fmt/format.h>

#include <functional>

#include "base/checked.h"
#include "base/result.h"
#include "gpu/ptx/link.h"
#include "gpu/ptx/parser.h"
#include "gpu/soft/decode/by_function.h"
#include "gpu/soft/decode/decoder.h"
#include "gpu/soft/decode/unresolved.h"

namespace vgpud::soft {
namespace {

uint64_t HostBytes(const ModuleImage& image) {
  const ProgramCode& code = *image.code;
  uint64_t bytes =
      code.code.size() * (sizeof(Inst) + sizeof(Origin)) + code.constants.size() + code.source_lines.bytes();
  for (const std::string& text : image.texts) bytes += text.size();
  if (image.ends != nullptr) bytes += image.ends->size() * 4 * sizeof(ptx::BodyEnds::value_type);
  for (const ptx::Variable& v : image.variables) bytes += sizeof v + v.init.size();
  return bytes + code.functions.size() * sizeof(CodeFunction) + code.call_sites.size() * sizeof(CallSite);
}

// What a module is made of.
struct Source {
  std::unique_ptr<ptx::Module> module;  // of its variables and targets
  std::shared_ptr<const ProgramCode> code;
  std::unique_ptr<const ptx::BodyEnds> ends;
};

GpuResult<Source> FromHeaders(std::unique_ptr<Headers> headers, const OpTable& table, DecodeFor what_for) {
  auto code = TRY(Decode(*headers->module, table, what_for));
  return Source{std::move(headers->module), std::move(code), std::make_unique<ptx::BodyEnds>(std::move(headers->ends))};
}

GpuResult<Source> FromText(const std::string& text, const OpTable& table, DecodeFor what_for, Loading loading) {
  if (loading == Loading::kByFunction)
    if (auto headers = TRY(ReadHeaders(text)); headers != nullptr)
      return FromHeaders(std::move(headers), table, what_for);
  auto module = TRY(ptx::Parse(text));
  auto code = TRY(Decode(*module, table, what_for));
  return Source{std::move(module), std::move(code), nullptr};
}

GpuResult<Source> FromParts(const std::vector<std::string>& texts, const OpTable& table, DecodeFor what_for) {
  auto parts = TRY(ptx::LinkedParts::Read(texts));
  auto code = TRY(Decode(parts, table, what_for));
  return Source{parts.Take(std::move(parts.module().parts)), std::move(code), nullptr};
}

}  // namespace

GpuResult<ModuleImagePtr> MakeModuleImage(std::vector<std::string> texts, const OpTable& table, DecodeFor what_for,
                                          Loading loading) {
  if (texts.empty()) return GpuFail(CuStatus::kInvalidPtx, "a module without PTX");
  Source source =
      TRY(texts.size() == 1 ? FromText(texts[0], table, what_for, loading) : FromParts(texts, table, what_for));
  if (const std::string name = FirstUnresolved(*source.code, texts); !name.empty())
    return GpuFail(CuStatus::kInvalidPtx, fmt::format("Unresolved extern function '{}'", name));
  auto image = std::make_shared<ModuleImage>();
  for (const auto& part : source.module->parts) image->targets.push_back(part->target);
  if (image->targets.empty()) image->targets.push_back(source.module->target);
  image->code = std::move(source.code);
  image->ends = std::move(source.ends);
  image->variables = std::move(source.module->variables);
  image->texts = std::move(texts);
  CheckedSize const_bytes;
  for (const ptx::Variable& v : image->variables)
    if (v.space == ptx::Space::kConst) const_bytes += v.bytes;
  image->const_bytes = const_bytes.saturated();
  return image;
}

GpuResult<ModuleImagePtr> ModuleImageCache::Get(std::vector<std::string> texts, const OpTable& table,
                                                DecodeFor what_for, Loading loading) {
  size_t hash = texts.size();
  for (const std::string& text : texts) hash = hash * 31 + std::hash<std::string_view>()(text);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->hash != hash || entry->image->texts != texts) continue;
    if (entry->image->ends != nullptr && loading == Loading::kWhole) continue;
    ++hits_;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->image;
  }
  auto image = MakeModuleImage(std::move(texts), table, what_for, loading);
  if (!image) return image;
  const uint64_t bytes = HostBytes(**image);
  if (bytes > kMaxBytes) return image;
  entries_.push_front({hash, bytes, *image});
  bytes_ += bytes;
  while (entries_.size() > kMaxImages || bytes_ > kMaxBytes) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return image;
}

}  // namespace vgpud::soft
