// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/journal.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"

namespace vgpud::daemon {
namespace {

// syslog(3). What another process says is ordinary.
constexpr int kPriorities[] = {3, 4, 6, 7};
constexpr int kOfOthers = 6;
constexpr std::string_view kFields[] = {"vf", "channel", "pid", "gpu"};

int g_socket = -1;  // for as long as the process lives
sockaddr_un g_journal{};

int PriorityOf(std::optional<LogLevel> level) { return level ? kPriorities[static_cast<int>(*level)] : kOfOthers; }

// "vf=a pid=7 ..." -> VGPU_VF=a, VGPU_PID=7; up to the first word that is none of these.
void AppendWords(std::string* fields, std::string_view text) {
  for (;;) {
    const std::string_view word = text.substr(0, std::min(text.find(' '), text.size()));
    const size_t equals = word.find('=');
    if (equals == word.npos) return;
    const std::string_view key = word.substr(0, equals);
    if (std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields)) return;
    *fields += "VGPU_";
    for (const char c : key) *fields += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string_view value = word.substr(equals + 1);
    while (value.ends_with(':')) value.remove_suffix(1);
    *fields += fmt::format("={}\n", value);
    if (word.size() == text.size()) return;
    text.remove_prefix(word.size() + 1);
  }
}

bool StderrIsTheJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat st {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &st) == 0 && fmt::format("{}:{}", st.st_dev, st.st_ino) == stream;
}

bool Send(std::optional<LogLevel> level, std::string_view origin, std::string_view text) {
  const std::string fields = JournalFields(level, origin, text);
  ssize_t n = 0;
  do {
    n = ::sendto(g_socket, fields.data(), fields.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&g_journal), sizeof g_journal);
  } while (n < 0 && errno == EINTR);
  return n >= 0;
}

}  // namespace

// `text` has no newline and nothing that is not ASCII (base/log.h), so that the simple form of a field always fits.
std::string JournalFields(std::optional<LogLevel> level, std::string_view origin, std::string_view text) {
  std::string fields = fmt::format("PRIORITY={}\nSYSLOG_IDENTIFIER=vgpud\n", PriorityOf(level));
  AppendWords(&fields, level ? text : origin);
  fields += level ? fmt::format("MESSAGE={}\n", text) : fmt::format("MESSAGE={}: {}\n", origin, text);
  return fields;
}

bool LogToJournal(const std::string& socket) {
  if (!StderrIsTheJournal() || socket.size() >= sizeof g_journal.sun_path) return false;
  UniqueFd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd) return false;
  g_journal.sun_family = AF_UNIX;
  std::memcpy(g_journal.sun_path, socket.c_str(), socket.size() + 1);
  g_socket = fd.Release();
  SetLogSink(&Send);
  return true;
}

}  // namespace vgpud::daemon
