// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/see/screen.h"

// Functions instead of macros.
#define NCURSES_NOMACROS
#include <ncurses.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace vgpud::tools {
namespace {

constexpr int kEscape = 27;
constexpr size_t kLongestLine = 60;

void Put(int y, const std::string& line, attr_t look = A_NORMAL) {
  ::wattrset(stdscr, static_cast<int>(look));
  ::mvwaddnstr(stdscr, y, 0, line.c_str(), std::max(0, COLS));
  ::wclrtoeol(stdscr);
  ::wattrset(stdscr, A_NORMAL);
}

}  // namespace

std::unique_ptr<Screen> Screen::Open() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return nullptr;
  SCREEN* const terminal = ::newterm(nullptr, stdout, stdin);
  return terminal == nullptr ? nullptr : std::unique_ptr<Screen>(new Screen(terminal));
}

Screen::Screen(void* terminal) : terminal_(terminal) {
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
}

Screen::~Screen() {
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(terminal_));
}

void Screen::Draw(const Frame& frame, const std::string& title, size_t selected, const std::string& status) {
  const FrameText text = TextOf(frame, static_cast<size_t>(std::max(1, COLS)));
  int y = 0;
  ::werase(stdscr);
  Put(y++, title);
  for (const std::string& gpu : text.gpus) Put(y++, gpu, A_BOLD);
  Put(y++, text.heading, A_REVERSE);
  const auto room = static_cast<size_t>(std::max(1, LINES - y - 1));
  first_ = std::min(first_, selected);
  if (selected >= first_ + room) first_ = selected - room + 1;
  const size_t end = std::min(text.vfs.size(), first_ + room);
  for (size_t i = first_; i < end; ++i) Put(y++, text.vfs[i], i == selected ? A_STANDOUT : A_NORMAL);
  Put(LINES - 1, status);
  ::wrefresh(stdscr);
}

std::optional<int> Screen::Key(std::chrono::milliseconds limit) {
  ::wtimeout(stdscr, static_cast<int>(std::max<int64_t>(0, limit.count())));
  const int key = ::wgetch(stdscr);
  if (key == ERR) return std::nullopt;
  return key;
}

std::optional<std::string> Screen::Line(const std::string& question) {
  std::string typed;
  for (;;) {
    Put(LINES - 1, question + typed, A_BOLD);
    ::wrefresh(stdscr);
    ::wtimeout(stdscr, -1);
    const int key = ::wgetch(stdscr);
    if (key == kEscape || key == ERR) return std::nullopt;
    if (key == '\n' || key == '\r' || key == KEY_ENTER) return typed;
    if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && !typed.empty()) typed.pop_back();
    if (key < 128 && std::isprint(key) != 0 && typed.size() < kLongestLine) typed += static_cast<char>(key);
  }
}

Arrow ArrowOf(int key) {
  switch (key) {
    case KEY_UP:
    case 'k':
      return Arrow::kUp;
    case KEY_DOWN:
    case 'j':
      return Arrow::kDown;
    case KEY_PPAGE:
      return Arrow::kPageUp;
    case KEY_NPAGE:
      return Arrow::kPageDown;
    default:
      return Arrow::kNone;
  }
}

}  // namespace vgpud::tools
