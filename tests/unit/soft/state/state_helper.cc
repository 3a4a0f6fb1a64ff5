// SPDX-License-Identifier: Apache-2.0
// A process of its own for tests of saved contexts:
//   state_helper save ISA THREADS WORK INSTRUCTIONS FILE   runs so much of a work and saves the context
//   state_helper finish ISA THREADS WORK FILE              reads it, runs it to its end, prints "ANSWER INSTRUCTIONS"
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/unit/soft/state/saved_context.h"
#include "tests/unit/soft/state/soft_works.h"

namespace vgpud::soft {
namespace {

Isa IsaNamed(const std::string& name) {
  for (const Isa isa : AvailableIsas())
    if (name == NameOf(isa)) return isa;
  return Isa::kSse4;
}

constexpr uint64_t kVram = 64 << 20;

uint32_t Threads(const std::string& word) { return static_cast<uint32_t>(std::stoul(word)); }

int Save(const std::vector<std::string>& words) {
  SoftMachine m(IsaNamed(words[1]), kVram, Threads(words[2]));
  const Work work = FindWork(words[3]).make(m);
  const auto ran = work.grid->Run({&m.word, 0}, std::stoull(words[4]));
  if (!ran) return std::fprintf(stderr, "%s\n", ran.error().text.c_str()), 1;
  const auto saved = SaveAll(m, {work.grid.get()});
  if (!saved) return std::fprintf(stderr, "%s\n", saved.error().text.c_str()), 1;
  std::ofstream file(words[5], std::ios::binary);
  file.write(reinterpret_cast<const char*>(saved->data()), static_cast<std::streamsize>(saved->size()));
  return file.flush() ? 0 : 1;
}

int Finish(const std::vector<std::string>& words) {
  const Isa isa = IsaNamed(words[1]);
  // Where its answer will be.
  Work work;
  {
    SoftMachine scratch(isa);
    work = FindWork(words[3]).make(scratch);
    work.grid.reset();
  }
  std::ifstream file(words[4], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  SoftMachine m(isa, kVram, Threads(words[2]));
  auto restored = RestoreAll(m, std::as_bytes(std::span(text)));
  if (!restored) return std::fprintf(stderr, "%s\n", restored.error().text.c_str()), 1;
  const Outcome ran = m.Finish(*restored->at(0));
  if (ran.status != CuStatus::kSuccess) return std::fprintf(stderr, "%s\n", ran.text.c_str()), 1;
  std::printf("%llu %llu\n", static_cast<unsigned long long>(Answer(m, work)),
              static_cast<unsigned long long>(ran.instructions));
  return 0;
}

}  // namespace
}  // namespace vgpud::soft

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  int status = 2;
  if (words.size() == 6 && words[0] == "save") status = vgpud::soft::Save(words);
  if (words.size() == 5 && words[0] == "finish") status = vgpud::soft::Finish(words);
  return testing::Test::HasFailure() ? 1 : status;
}
