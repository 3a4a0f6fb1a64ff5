// SPDX-License-Identifier: Apache-2.0
// How fast modules load: MB of PTX text per second of computing time, parsed and decoded, on one core.
// usage: load_bench [--least=MB/s] [--list] PATH...
//   PATH: a .ptx file, a program built by nvcc (the fatbins in it are taken), or a folder of such.
//   --list: one line per module. --least: exit status 1 when slower.
// Every module that does not load is named with its message; the exit status is 1 then.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gpu/ptx/fatbin.h"
#include "gpu/ptx/parser.h"
#include "gpu/soft/decode/module_image.h"
#include "gpu/soft/memory/arena.h"
#include "gpu/soft/soft_gpu.h"

namespace {

constexpr uint32_t kComputeCapability = 75;
constexpr uint64_t kArenaBytes = uint64_t{1} << 30;
// Short texts are loaded so often that a pass takes about this much text.
constexpr uint64_t kPassBytes = 4 << 20;
constexpr int kPasses = 3;
constexpr uint32_t kFatbinMagic = 0xBA55ED50;

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Source {
  std::string name;
  std::string text;
};

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The PTX of every fatbin in a program's file.
void TakeFatbins(const std::string& name, const std::string& bytes, std::vector<Source>& to) {
  int count = 0;
  for (size_t at = 0; at + 16 <= bytes.size(); at += 8) {
    uint32_t magic;
    uint16_t header_bytes;
    uint64_t entries_bytes;
    std::memcpy(&magic, bytes.data() + at, 4);
    if (magic != kFatbinMagic) continue;
    std::memcpy(&header_bytes, bytes.data() + at + 6, 2);
    std::memcpy(&entries_bytes, bytes.data() + at + 8, 8);
    if (entries_bytes > bytes.size() - at - header_bytes) continue;
    const auto image = std::as_bytes(std::span(bytes.data() + at, header_bytes + entries_bytes));
    auto texts = vgpud::ptx::SelectPtx(image, kComputeCapability);
    // One without PTX is the linker's: machine code that calls nothing.
    if (texts)
      for (std::string& text : *texts) to.push_back({fmt::format("{}#{}", name, count++), std::move(text)});
    at += header_bytes + entries_bytes - 8;
    at = at / 8 * 8;
  }
}

void Take(const std::filesystem::path& path, std::vector<Source>& to) {
  if (std::filesystem::is_directory(path)) {
    std::vector<std::filesystem::path> inside;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) inside.push_back(entry.path());
    std::sort(inside.begin(), inside.end());
    for (const auto& file : inside) Take(file, to);
    return;
  }
  std::string bytes = ReadAll(path);
  if (path.extension() == ".ptx") {
    to.push_back({path.filename(), std::move(bytes)});
  } else if (bytes.starts_with("\x7f"
                               "ELF")) {
    TakeFatbins(path.filename(), bytes, to);
  }
}

struct Speed {
  double parse_s = 1e9;
  double load_s = 1e9;   // parse and decode
  double again_s = 1e9;  // load what the context has loaded before
};

}  // namespace

int main(int argc, char** argv) {
  double least = 0;
  bool list = false;
  std::vector<Source> sources;
  for (int n = 1; n < argc; ++n) {
    const std::string_view argument = argv[n];
    if (argument.starts_with("--least=")) {
      least = std::atof(argv[n] + 8);
    } else if (argument == "--list") {
      list = true;
    } else {
      Take(argument, sources);
    }
  }
  if (sources.empty()) {
    std::fprintf(stderr, "usage: load_bench [--least=MB/s] [--list] PATH...\n");
    return 1;
  }
  int failed = 0;
  uint64_t bytes = 0;
  double parse_s = 0;
  double load_s = 0;
  double again_s = 0;
  const auto& table = vgpud::soft::OpTable::Of(vgpud::soft::BestIsa());
  for (const Source& source : sources) {
    const auto image = std::as_bytes(std::span(source.text.data(), source.text.size()));
    const uint64_t rounds = std::max<uint64_t>(1, kPassBytes / (source.text.size() + 1) / sources.size());
    Speed best;
    std::string why;
    for (int pass = 0; pass < kPasses && why.empty(); ++pass) {
      double begin = CpuSeconds();
      for (uint64_t round = 0; round < rounds; ++round)
        if (const auto module = vgpud::ptx::Parse(source.text); !module) why = module.error().text;
      best.parse_s = std::min(best.parse_s, (CpuSeconds() - begin) / static_cast<double>(rounds));
      begin = CpuSeconds();
      for (uint64_t round = 0; round < rounds; ++round)
        if (const auto made = vgpud::soft::MakeModuleImage({source.text}, table); !made) why = made.error().text;
      best.load_s = std::min(best.load_s, (CpuSeconds() - begin) / static_cast<double>(rounds));
      vgpud::soft::SoftGpu gpu(kArenaBytes, vgpud::soft::BestIsa());
      if (const auto module = gpu.Load(image); !module) why = module.error().text;
      begin = CpuSeconds();
      for (uint64_t round = 0; round < rounds; ++round) static_cast<void>(gpu.Load(image));
      best.again_s = std::min(best.again_s, (CpuSeconds() - begin) / static_cast<double>(rounds));
    }
    if (!why.empty()) {
      ++failed;
      fmt::print("{}: {}\n", source.name, why);
      continue;
    }
    bytes += source.text.size();
    parse_s += best.parse_s;
    load_s += best.load_s;
    again_s += best.again_s;
    if (list)
      fmt::print("{}: {} bytes, parse {:.1f} MB/s, load {:.1f} MB/s\n", source.name, source.text.size(),
                 static_cast<double>(source.text.size()) / best.parse_s / 1e6,
                 static_cast<double>(source.text.size()) / best.load_s / 1e6);
  }
  const double speed = static_cast<double>(bytes) / load_s / 1e6;
  const double mb = static_cast<double>(bytes) / 1e6;
  fmt::print(
      "{} modules, {} not loaded, {:.2f} MB of PTX: parse {:.1f} MB/s, parse + decode {:.1f} MB/s, "
      "again {:.1f} MB/s\n",
      sources.size(), failed, mb, mb / parse_s, speed, mb / again_s);
  return failed != 0 || speed < least ? 1 : 0;
}
