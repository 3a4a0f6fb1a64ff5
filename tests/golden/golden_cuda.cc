// SPDX-License-Identifier: Apache-2.0
// The golden tests on whatever libcuda is there: a real GPU or a VF. A C++ compiler is enough:
//   c++ -std=c++20 -I REPO -o golden_cuda REPO/tests/golden/golden{,_object,_cuda,_cuda_object,_cuda_run}.cc -ldl
// Exit status: 0 all forms that this device can have are right, 1 some are not, 2 no device or no files, 3 a fault or
// --seconds has ended the run before all have run.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "tests/golden/golden_cuda_run.h"

namespace {

using namespace vgpud::golden;

constexpr char kUsage[] =
    "usage: golden_cuda [--library FILE] [--jobs N] [--seconds N] [--json FILE] [--all] FILE.golden...\n"
    "Runs the golden tests on device 0 of a CUDA driver and lists what differs, by form of instruction.\n"
    "  --library FILE  the driver; without: libcuda.so.1, where the loader finds it\n"
    "  --jobs N        N processes, each with a context of its own; without: 1. A driver takes some 10 ms to compile a "
    "form\n"
    "  --seconds N     ends the run then, with what it has; a form that hangs is among those that have not run\n"
    "  --json FILE     the same for programs\n"
    "  --all           also the forms that need a higher compute capability than the device says it has\n";

constexpr int kAllRight = 0, kSomeWrong = 1, kNotPossible = 2, kEndedEarly = 3;
constexpr unsigned kMostJobs = 64;

struct Options {
  const char* library = "libcuda.so.1";
  unsigned jobs = 1;
  unsigned seconds = 0;  // 0: no limit
  const char* json = nullptr;
  bool all = false;
  std::vector<const char*> files;
};

bool Read(int argc, char** argv, Options& options) {
  for (int n = 1; n < argc; ++n) {
    const std::string_view argument = argv[n];
    const auto value = [&] { return n + 1 < argc ? argv[++n] : nullptr; };
    const auto number = [&] {
      const char* const text = value();
      return text == nullptr ? 0 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
    };
    if (argument == "--all") {
      options.all = true;
    } else if (argument == "--library") {
      options.library = value();
    } else if (argument == "--json") {
      options.json = value();
    } else if (argument == "--jobs") {
      options.jobs = number();
    } else if (argument == "--seconds") {
      options.seconds = number();
    } else {
      options.files.push_back(argv[n]);
    }
  }
  return options.library != nullptr && options.jobs > 0 && options.jobs <= kMostJobs && !options.files.empty();
}

bool ReadForms(const Options& options, std::vector<Form>& forms) {
  for (const char* const name : options.files) {
    std::ifstream file(name);
    std::stringstream text;
    text << file.rdbuf();
    std::string error = file ? "" : "cannot be read";
    std::vector<Form> more;
    if (file) more = Parse(text.str(), error);
    if (!error.empty()) {
      std::fprintf(stderr, "golden_cuda: %s: %s\n%s", name, error.c_str(), kUsage);
      return false;
    }
    std::move(more.begin(), more.end(), std::back_inserter(forms));
  }
  return !forms.empty();
}

// What the processes share: one record a form, written by the process that runs it.
struct Record {
  Became became;
  uint32_t values_wrong;
  char text[1536];
};
struct Shared {
  char device[256];
  uint32_t capability;
  int32_t driver_version;
  char failed[256];  // why there is no device
};

// Every `jobs`th form from `first` on. A driver must not be forked, so each process opens it itself.
int Work(const Options& options, const std::vector<Form>& forms, unsigned first, Shared& shared, Record* rows) {
  Driver driver{};
  Device device;
  if (!driver.Load(options.library)) return kNotPossible;
  if (const std::string why = OpenDevice(driver, device); !why.empty()) {
    std::snprintf(shared.failed, sizeof(shared.failed), "%s", why.c_str());
    return kNotPossible;
  }
  if (first == 0) {
    std::snprintf(shared.device, sizeof(shared.device), "%s", device.name.c_str());
    shared.capability = device.capability;
    shared.driver_version = device.driver_version;
  }
  Runner runner(driver);
  for (size_t n = first; n < forms.size(); n += options.jobs) {
    Outcome outcome{Became::kSkipped, 0, {}};
    if (RunsOn(forms[n], device.capability, options.all)) outcome = runner.Run(forms[n]);
    rows[n].values_wrong = outcome.values_wrong;
    std::snprintf(rows[n].text, sizeof(rows[n].text), "%s", outcome.text.c_str());
    rows[n].became = outcome.became;
    if (runner.lost()) return kEndedEarly;
  }
  return kAllRight;
}

void Ignore(int) {}

// The worst status. The first process that does not end well, or the end of the time, ends the others.
int RunAll(const Options& options, const std::vector<Form>& forms, Shared& shared, Record* rows) {
  std::vector<pid_t> running;
  for (unsigned n = 0; n < options.jobs; ++n) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(Work(options, forms, n, shared, rows));
    if (child > 0) running.push_back(child);
  }
  int worst = running.size() == options.jobs ? kAllRight : kNotPossible;
  struct sigaction alarm {};
  alarm.sa_handler = Ignore;
  ::sigaction(SIGALRM, &alarm, nullptr);
  ::alarm(options.seconds);
  while (!running.empty()) {
    int how = 0;
    const pid_t ended = ::wait(&how);
    if (ended < 0) {  // the alarm
      worst = kEndedEarly;
      for (const pid_t late : running) ::kill(late, SIGKILL);
      continue;
    }
    std::erase(running, ended);
    const int status = WIFEXITED(how) ? WEXITSTATUS(how) : kEndedEarly;
    if (WIFSIGNALED(how) && worst == kAllRight)
      std::fprintf(stderr, "golden_cuda: a process was ended by signal %d\n", WTERMSIG(how));
    if (status != kAllRight && worst == kAllRight) {
      worst = status;
      for (const pid_t other : running) ::kill(other, SIGKILL);
    }
  }
  return worst;
}

struct Count {
  size_t right = 0, wrong = 0;
};

// "add" of "add.rz.f32": what the summary counts by.
std::string InstructionOf(const Form& f) { return f.name.substr(0, f.name.find('.')); }

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "\"";
}

bool WriteJson(const char* name, const std::vector<Form>& forms, const Shared& shared, const Record* rows,
               const std::map<Became, size_t>& counts) {
  std::ofstream out(name);
  out << "{\"device\": " << Quoted(shared.device) << ", \"capability\": " << shared.capability
      << ", \"driver_version\": " << shared.driver_version << ", \"counts\": {";
  const char* separator = "";
  for (const auto& [became, count] : counts) {
    out << separator << Quoted(Name(became)) << ": " << count;
    separator = ", ";
  }
  out << "},\n \"differences\": [";
  separator = "\n  ";
  for (size_t n = 0; n < forms.size(); ++n) {
    if (rows[n].became < Became::kWrong) continue;
    out << separator << "{\"form\": " << Quoted(forms[n].name) << ", \"what\": " << Quoted(Name(rows[n].became))
        << ", \"values_wrong\": " << rows[n].values_wrong
        << ", \"values\": " << forms[n].rows.size() * forms[n].out.size() << ", \"text\": " << Quoted(rows[n].text)
        << "}";
    separator = ",\n  ";
  }
  out << "]}\n";
  out.close();
  return out.good();
}

template <class T>
T* SharedMemory(size_t count) {
  void* const memory = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<Form> forms;
  if (!Read(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return kNotPossible;
  }
  if (!ReadForms(options, forms)) return kNotPossible;
  auto* const shared = SharedMemory<Shared>(1);
  auto* const rows = SharedMemory<Record>(forms.size());
  if (shared == nullptr || rows == nullptr) {
    std::perror("golden_cuda: memory for results");
    return kNotPossible;
  }
  const int status = RunAll(options, forms, *shared, rows);
  if (status == kNotPossible) {
    std::fprintf(stderr, "golden_cuda: %s gives no device: %s\n", options.library, shared->failed);
    return status;
  }
  std::printf("%s, compute capability %u.%u\n", shared->device, shared->capability / 10, shared->capability % 10);
  std::map<Became, size_t> counts;
  std::map<std::string, Count> instructions;
  for (size_t n = 0; n < forms.size(); ++n) {
    ++counts[rows[n].became];
    Count& count = instructions[InstructionOf(forms[n])];
    count.right += rows[n].became == Became::kRight;
    count.wrong += rows[n].became >= Became::kWrong;
    std::fputs(rows[n].text, stdout);
    if (rows[n].became == Became::kFault)
      std::printf("the context is lost with %s; nothing ran after it\n", forms[n].name.c_str());
  }
  const size_t wrong = counts[Became::kWrong] + counts[Became::kRefused] + counts[Became::kFault];
  for (const auto& [name, count] : instructions)
    if (count.wrong != 0)
      std::printf("differs: %s: %zu of %zu forms\n", name.c_str(), count.wrong, count.right + count.wrong);
  if (options.json != nullptr && !WriteJson(options.json, forms, *shared, rows, counts)) {
    std::fprintf(stderr, "golden_cuda: %s can't be written\n", options.json);
    return kNotPossible;
  }
  std::printf(
      "golden_cuda: %zu forms right, %zu wrong (%zu refused), %zu need another compute capability, %zu not run\n",
      counts[Became::kRight], wrong, counts[Became::kRefused], counts[Became::kSkipped], counts[Became::kNotRun]);
  if (status == kEndedEarly) return kEndedEarly;
  return wrong == 0 ? kAllRight : kSomeWrong;
}
