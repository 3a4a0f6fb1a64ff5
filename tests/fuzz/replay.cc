// SPDX-License-Identifier: Apache-2.0
// Runs one fuzz target over the files that the command line names, and over each file in an archive NAME.tar of
// corpus.py. For compilers without libFuzzer, and for the sanitizers that a build has anyway.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// POSIX's ustar format: blocks of this many bytes, a header before each file, a header of zeros at the end.
constexpr size_t kBlock = 512;
constexpr size_t kSizeOffset = 124, kSizeDigits = 11, kTypeOffset = 156, kMagicOffset = 257;

std::optional<size_t> Octal(std::string_view digits) {
  size_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<size_t>(digit - '0');
  }
  return value;
}

void RunInput(std::string_view bytes) {
  // A copy of its own: the sanitizers see a read past the end.
  const std::string input(bytes);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// How many files the archive has; nothing if it is damaged.
std::optional<size_t> RunArchive(std::string_view archive) {
  for (size_t count = 0;; ++count) {
    if (archive.size() < kBlock) return std::nullopt;
    const std::string_view header = archive.substr(0, kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) return count;
    const std::optional<size_t> size = Octal(header.substr(kSizeOffset, kSizeDigits));
    if (!size || header[kTypeOffset] != '0' || header.substr(kMagicOffset, 5) != "ustar") return std::nullopt;
    archive.remove_prefix(kBlock);
    const size_t padded = (*size + kBlock - 1) / kBlock * kBlock;
    if (padded > archive.size()) return std::nullopt;
    RunInput(archive.substr(0, *size));
    archive.remove_prefix(padded);
  }
}

}  // namespace

int main(int argc, char** argv) {
  size_t inputs = 0;
  for (int n = 1; n < argc; ++n) {
    const std::string_view path = argv[n];
    std::ifstream file(argv[n], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!path.ends_with(".tar")) {
      RunInput(bytes);
      ++inputs;
    } else if (const std::optional<size_t> count = RunArchive(bytes)) {
      inputs += *count;
    } else {
      std::fprintf(stderr, "%s is not a whole archive of corpus.py\n", argv[n]);
      return 1;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs == 0 ? 1 : 0;
}
