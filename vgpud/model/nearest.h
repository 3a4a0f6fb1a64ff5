// SPDX-License-Identifier: Apache-2.0
// What somebody probably meant who wrote a word that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vgpud::control {

// The words of `words` that differ least from `wrong`, one to three of them. None if no word is near, or if more than
// three are equally near. Capital letters do not count, swapped neighbours count as one difference, and so does the
// missing end of a word.
std::vector<std::string> Nearest(std::string_view wrong, const std::vector<std::string>& words);

// "did you mean list, lint or set?", of one to three words.
std::string DidYouMeanOneOf(const std::vector<std::string>& words);

// "did you mean policy?", or "there are daemon, gpu" when none is near.
std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& words);

}  // namespace vgpud::control
