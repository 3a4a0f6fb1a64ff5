// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/domain/let_go.h"

#include <fmt/core.h>

#include <thread>

#include "base/clock.h"
#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {
namespace {

constexpr std::chrono::milliseconds kLookAgain{50};

}  // namespace

tl::expected<void, int> WaitUntilGone(const CtlArgs& args, const std::string& device,
                                      const std::function<tl::expected<bool, int>()>& is_there) {
  const TimePoint end = Now() + args.timeout;
  for (;;) {
    const auto there = is_there();
    if (!there) return tl::unexpected(there.error());
    if (!*there) return {};
    if (Now() > end)
      return tl::unexpected(Complain(
          kExitTimedOut, fmt::format("{}: the guest has not let {} go yet: end the programs on it, then try again "
                                     "(longer: --timeout)",
                                     args.name, device)));
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace vgpud::tools
