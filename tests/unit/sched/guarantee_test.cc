// SPDX-License-Identifier: Apache-2.0
// The counterexample of docs/adr/0003: which promise no order of whole slices can keep.
#include <gtest/gtest.h>

#include <vector>

namespace vgpud {
namespace {

// In units of a slice: every interval of W turns has at least guarantee x W - 1 of them for each VF.
bool Kept(const std::vector<int>& order, const std::vector<double>& guarantees) {
  for (size_t vf = 0; vf < guarantees.size(); ++vf) {
    int turns = 0;
    for (size_t length = 1; length <= order.size(); ++length) {
      turns += order[order.size() - length] == static_cast<int>(vf);
      if (turns < guarantees[vf] * static_cast<double>(length) - 1 - 1e-9) return false;
    }
  }
  return true;
}

// The most turns, up to `enough`, of an order that goes on from `order` and keeps the promise.
size_t Longest(std::vector<int>& order, const std::vector<double>& guarantees, size_t enough) {
  size_t longest = order.size();
  for (size_t vf = 0; vf < guarantees.size() && longest < enough; ++vf) {
    order.push_back(static_cast<int>(vf));
    if (Kept(order, guarantees)) longest = std::max(longest, Longest(order, guarantees, enough));
    order.pop_back();
  }
  return longest;
}

TEST(GuaranteeTest, NoOrderOfWholeSlicesLosesLessThanOneSlice) {
  std::vector<int> order;
  EXPECT_EQ(Longest(order, {0.501, 0.334, 0.1}, 100), 12u);
}

TEST(GuaranteeTest, SomeGuaranteesAllowIt) {
  std::vector<int> order;
  EXPECT_EQ(Longest(order, {0.5, 0.25, 0.25}, 100), 100u);
}

}  // namespace
}  // namespace vgpud
