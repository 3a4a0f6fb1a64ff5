// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/decode/module_image.h"

#include <functional>

#include "base/checked.h"
#include "gpu/ptx/link.h"
#include "gpu/soft/decode/by_function.h"
#include "gpu/soft/decode/decoder.h"

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

}  // namespace

GpuResult<ModuleImagePtr> MakeModuleImage(std::vector<std::string> texts, const OpTable& table, bool check,
                                          Loading loading) {
  std::unique_ptr<Headers> headers;
  if (loading == Loading::kByFunction && texts.size() == 1) {
    auto read = ReadHeaders(texts[0]);
    if (!read) return tl::unexpected(std::move(read).error());
    headers = std::move(*read);
  }
  auto source =
      headers != nullptr ? GpuResult<std::unique_ptr<ptx::Module>>(std::move(headers->module)) : ptx::ParseParts(texts);
  if (!source) return tl::unexpected(std::move(source).error());
  std::vector<ptx::Target> targets;
  for (const auto& part : (*source)->parts) targets.push_back(part->target);
  if (targets.empty()) targets.push_back((*source)->target);
  auto code = Decode(**source, table, check);
  if (!code) return tl::unexpected(std::move(code).error());
  auto image = std::make_shared<ModuleImage>();
  image->texts = std::move(texts);
  image->targets = std::move(targets);
  image->code = std::move(*code);
  image->variables = std::move((*source)->variables);
  CheckedSize const_bytes;
  for (const ptx::Variable& v : image->variables)
    if (v.space == ptx::Space::kConst) const_bytes += v.bytes;
  image->const_bytes = const_bytes.saturated();
  if (headers != nullptr) image->ends = std::make_unique<const ptx::BodyEnds>(std::move(headers->ends));
  return image;
}

GpuResult<ModuleImagePtr> ModuleImageCache::Get(std::vector<std::string> texts, const OpTable& table, bool check,
                                                Loading loading) {
  size_t hash = texts.size();
  for (const std::string& text : texts) hash = hash * 31 + std::hash<std::string_view>()(text);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->hash != hash || entry->image->texts != texts) continue;
    if (entry->image->ends != nullptr && loading == Loading::kWhole) continue;
    ++hits_;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->image;
  }
  auto image = MakeModuleImage(std::move(texts), table, check, loading);
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
