// SPDX-License-Identifier: Apache-2.0
// The undamaged texts that tests damage.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/soft/rig/fatbin_builder.h"

namespace vgpud {

// Of all .ptx files in `folder`, in the order of their names.
inline std::vector<std::string> TextsIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

// Each a program of several parts: the texts in one folder of `folder`.
inline std::vector<std::vector<std::string>> ProgramsIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<std::string>> programs;
  for (const auto& path : paths) programs.push_back(TextsIn(path));
  return programs;
}

// The image that libcuda makes of them; `flags` of each text's entry: how it is compressed.
inline std::string ImageOfParts(const std::vector<std::string>& parts, uint64_t flags = 0) {
  FatbinBuilder image;
  for (const std::string& part : parts) {
    FatbinBuilder one;
    one.Add(FatbinBuilder::kElf, 75, "code").Add(FatbinBuilder::kPtx, 75, part, flags);
    image.Add(FatbinBuilder::kPart, 0, one.Build());
  }
  return image.Build();
}

}  // namespace vgpud
