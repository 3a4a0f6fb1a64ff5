// SPDX-License-Identifier: Apache-2.0
// What somebody probably meant who wrote a word that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vgpud::control {

// "did you mean policy?", or "there are daemon, gpu" when none is near.
std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& words);

}  // namespace vgpud::control
