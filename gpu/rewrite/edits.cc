// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/edits.h"

#include <algorithm>

namespace vgpud::rewrite {

std::string Edits::Apply() && {
  std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.offset < b.offset; });
  size_t bytes = original_.size();
  for (const Edit& edit : edits_) bytes += edit.text.size();
  std::string out;
  out.reserve(bytes);
  size_t at = 0;
  for (const Edit& edit : edits_) {
    out += original_.substr(at, edit.offset - at);
    out += edit.text;
    at = edit.offset + edit.removed;
  }
  return out += original_.substr(at);
}

}  // namespace vgpud::rewrite
