// SPDX-License-Identifier: Apache-2.0
// Runs one fuzz target over the files that are named, or that lie in the directories that are named. For compilers
// without libFuzzer, and for the sanitizers that a build has anyway.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int n = 1; n < argc; ++n) {
    if (std::filesystem::is_directory(argv[n])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[n])) files.push_back(entry.path());
    } else {
      files.emplace_back(argv[n]);
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
