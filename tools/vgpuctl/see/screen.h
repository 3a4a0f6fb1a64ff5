// SPDX-License-Identifier: Apache-2.0
// The terminal of vgpuctl top, by ncurses: draws a frame and a line to type in. One at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "tools/vgpuctl/see/frame.h"

namespace vgpud::tools {

class Screen {
 public:
  // Null: this is no terminal that ncurses knows.
  static std::unique_ptr<Screen> Open();
  ~Screen();  // the terminal is as it was
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // `selected`: a row of frame.vfs; `status`: the last line, `title` the first.
  void Draw(const Frame& frame, const std::string& title, size_t selected, const std::string& status);
  // A key, or nothing within `limit`. Keys of ncurses (KEY_UP) or characters.
  std::optional<int> Key(std::chrono::milliseconds limit);
  // What is typed behind `question`, until Enter; nothing: Escape.
  std::optional<std::string> Line(const std::string& question);

 private:
  explicit Screen(void* terminal);
  void* const terminal_;  // a SCREEN of ncurses, whose header has too many macros
  size_t first_ = 0;      // the first VF that is shown
};

// Keys that are no characters.
enum class Arrow { kUp, kDown, kPageUp, kPageDown, kNone };
Arrow ArrowOf(int key);

}  // namespace vgpud::tools
