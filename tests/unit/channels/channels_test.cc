// SPDX-License-Identifier: Apache-2.0
// Channels of another process off the GPU and on again, against a model of the driver (rm_model.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "gpu/channels/channel_switch.h"
#include "gpu/channels/channels_text.h"
#include "gpu/channels/observe.h"
#include "gpu/channels/rm_abi.h"
#include "tests/unit/channels/rm_model.h"

namespace vgpud::rm {
namespace {

using rm_model::Model;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kFd = 7;
constexpr uint32_t kChannelClass = 0xc86f, kComputeClass = 0xcbc0;

// A process whose driver makes objects by a file of its own, seen by its observer.
struct Process {
  explicit Process(Model& m) : model(m), file(m.Open()) {
    client = Make(0, 0, kClientClass);
    device = Make(client, client, kDeviceClass);
    subdevice = Make(client, device, kSubdeviceClass);
  }
  uint32_t Make(uint32_t root, uint32_t parent, uint32_t kind, bool is_short = false) {
    RmAlloc made{};
    made.root = root;
    made.parent = parent;
    made.kind = kind;
    const unsigned long request = is_short ? kShortAllocRequest : kAllocRequest;
    EXPECT_EQ(file->Ioctl(request, &made), 0);
    observed.Saw(kFd, request, &made);
    return made.object;
  }
  uint32_t Channel(uint32_t group, bool computes = true, bool bound = true) {
    const uint32_t channel = Make(client, group, kChannelClass, /*is_short=*/computes);
    if (computes) Make(client, channel, kComputeClass);
    if (bound) model.Bind(client, channel);
    channels.push_back(channel);
    return channel;
  }
  uint32_t Group(int count, bool computes = true) {
    const uint32_t group = Make(client, device, kGroupClass);
    for (int n = 0; n < count; ++n) Channel(group, computes && n == 0);
    return group;
  }
  void Free(uint32_t handle) {
    RmFree freed{client, 0, handle, UINT32_MAX};
    ASSERT_EQ(file->Ioctl(kFreeRequest, &freed), 0);
    observed.Saw(kFd, kFreeRequest, &freed);
  }
  ClientChannels Seen() const {
    const auto clients = observed.Channels();
    return clients.empty() ? ClientChannels{} : clients.front();
  }
  int Running() const {
    int running = 0;
    for (const uint32_t channel : channels) running += model.Runs(client, channel);
    return running;
  }

  Model& model;
  std::shared_ptr<rm_model::File> file;
  ObservedObjects observed;
  uint32_t client = 0, device = 0, subdevice = 0;
  std::vector<uint32_t> channels;
};

TEST(Channels, WhatAProcessMakesIsSeen) {
  Model model;
  Process process(model);
  const uint32_t compute = process.Group(8);
  process.Group(2, /*computes=*/false);
  const ClientChannels seen = process.Seen();
  EXPECT_EQ(seen.fd, kFd);
  EXPECT_EQ(seen.client, process.client);
  EXPECT_EQ(seen.subdevice, process.subdevice);
  EXPECT_EQ(seen.compute_group, compute);
  EXPECT_EQ(seen.groups.size(), 2u);
  EXPECT_EQ(seen.channels.size(), 10u);
  EXPECT_EQ(seen.of_compute_group.size(), 8u);

  process.Free(compute);  // and with it all that is below it
  EXPECT_EQ(process.Seen().channels.size(), 2u);
  process.Free(process.client);
  EXPECT_THAT(process.observed.all(), IsEmpty());
}

TEST(Channels, WhatWasRefusedIsNotSeen) {
  Model model;
  Process process(model), stranger(model);
  RmAlloc made{process.client, process.device, 0, kGroupClass, 0, 0, 0, 0, UINT32_MAX, 0};
  ASSERT_EQ(stranger.file->Ioctl(kAllocRequest, &made), 0);
  EXPECT_EQ(made.status, 0x23u);
  const size_t known = stranger.observed.all().size();
  stranger.observed.Saw(kFd, kAllocRequest, &made);
  EXPECT_EQ(stranger.observed.all().size(), known);
}

TEST(Channels, AllOfAProcessIsOffAndOnAgain) {
  Model model;
  Process process(model), neighbour(model);
  process.Group(8);
  process.Group(4, /*computes=*/false);
  neighbour.Group(8);
  ChannelSwitch turns(*process.file, 580);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(turns.Off(process.Seen()).ok());
    EXPECT_EQ(process.Running(), 0);
    EXPECT_EQ(neighbour.Running(), 8);
    ASSERT_TRUE(turns.On(process.Seen()).ok());
    EXPECT_EQ(process.Running(), 12);
  }
  EXPECT_EQ(turns.way(), Way::kDisable);
}

TEST(Channels, MoreThanOneCallTakesAreOffToo) {
  Model model;
  Process process(model);
  process.Group(150);
  ChannelSwitch turns(*process.file, 580);
  ASSERT_TRUE(turns.Off(process.Seen()).ok());
  EXPECT_EQ(process.Running(), 0);
  EXPECT_EQ(model.calls(Command::kDisableChannels), 3);
  ASSERT_TRUE(turns.On(process.Seen()).ok());
  EXPECT_EQ(process.Running(), 150);
}

TEST(Channels, ADriverThatDisablesNoneUnschedules) {
  Model model({.firmware_disables = false});
  Process process(model);
  process.Group(8);
  process.Group(3, false);
  ChannelSwitch turns(*process.file, 580);
  ASSERT_TRUE(turns.Off(process.Seen()).ok());
  EXPECT_EQ(turns.way(), Way::kUnschedule);
  EXPECT_EQ(process.Running(), 0) << "taken from the runlist and preempted";
  ASSERT_TRUE(turns.On(process.Seen()).ok());
  EXPECT_EQ(process.Running(), 11);
  const int tried = model.calls(Command::kDisableChannels);
  ASSERT_TRUE(turns.Off(process.Seen()).ok());
  EXPECT_EQ(model.calls(Command::kDisableChannels), tried) << "it is not tried again";
}

TEST(Channels, PreemptingAloneStopsNothing) {
  Model model;
  Process process(model);
  const uint32_t group = process.Group(8);
  const ChannelSwitch turns(*process.file, 580);
  ASSERT_TRUE(turns.PreemptGroup(process.Seen(), group, std::chrono::milliseconds(100)).ok());
  EXPECT_EQ(process.Running(), 8);
}

// Each size of the parameters, and a table that is wrong about it.
TEST(Channels, TheSizeOfParametersIsTheDrivers) {
  for (const uint32_t bytes : {2u, 3u})
    for (const uint32_t major : {570u, 580u}) {
      Model model({.schedule_bytes = bytes, .firmware_disables = false});
      Process process(model);
      process.Group(4);
      ChannelSwitch turns(*process.file, major);
      const Outcome off = turns.Off(process.Seen());
      ASSERT_TRUE(off.ok()) << off.Words();
      EXPECT_EQ(process.Running(), 0);
      EXPECT_EQ(model.calls(Command::kSchedule), TraitsOf(major).schedule_bytes == bytes ? 1 : 2);
      ASSERT_TRUE(turns.On(process.Seen()).ok());
      EXPECT_EQ(process.Running(), 4);
    }
}

TEST(Channels, NewcomersOfOneThatIsOffAreHeld) {
  for (const bool disables : {true, false}) {
    Model model({.firmware_disables = disables});
    Process process(model);
    process.Group(4);
    ChannelSwitch turns(*process.file, 580);
    ASSERT_TRUE(turns.Off(process.Seen()).ok());
    process.Group(2);
    EXPECT_EQ(process.Running(), 2) << "the model lets a new group run";
    ASSERT_TRUE(turns.HoldNewcomers(process.Seen()).ok());
    EXPECT_EQ(process.Running(), 0);
    ASSERT_TRUE(turns.On(process.Seen()).ok());
    EXPECT_EQ(process.Running(), 6);
    ASSERT_TRUE(turns.HoldNewcomers(process.Seen()).ok()) << "nothing of one that is on";
    EXPECT_EQ(process.Running(), 6);
  }
}

TEST(Channels, WhatIsGoneMeanwhileIsNotLetOn) {
  Model model;
  Process process(model);
  const uint32_t first = process.Group(4);
  process.Group(2);
  ChannelSwitch turns(*process.file, 580);
  ASSERT_TRUE(turns.Off(process.Seen()).ok());
  process.Free(first);
  const Outcome on = turns.On(process.Seen());
  ASSERT_TRUE(on.ok()) << on.Words();
  EXPECT_EQ(process.Running(), 2);
}

// The question goes to a file that is not the driver's: what counts is what was asked.
TEST(Channels, TheDriverAsksForAGpuThatReachesNoOtherMemory) {
  (void)OwnObjects();
  UvmInitialize asked{2, 0xffffffff};
  EXPECT_NE(0, ::ioctl(STDERR_FILENO, kUvmInitializeRequest, &asked));
  EXPECT_EQ(2u | kUvmDisableHmm, asked.flags);
  EXPECT_FALSE(HmmIsDisabled()) << "nobody has agreed";
}

TEST(Channels, AnotherFileIsNoOwner) {
  Model model;
  Process process(model);
  process.Group(4);
  const auto own = model.Open();  // of the same device, by root or not
  ChannelSwitch turns(*own, 580);
  const Outcome off = turns.Off(process.Seen());
  EXPECT_EQ(off.answer.status, 0x23u);
  EXPECT_THAT(off.Words(), HasSubstr("INVALID_CLIENT"));
  EXPECT_EQ(WhatThen(off.answer), Then::kLook);
  EXPECT_EQ(process.Running(), 4);
}

TEST(Channels, WhatBelongsToAFileLivesAsLongAsAnybodyHasIt) {
  Model model;
  auto process = std::make_unique<Process>(model);
  process->Group(4);
  const uint32_t client = process->client;
  std::shared_ptr<rm_model::File> supervisors = process->file;
  process.reset();
  EXPECT_TRUE(model.Has(client)) << "so vgpud closes it before it kills";
  supervisors.reset();
  EXPECT_FALSE(model.Has(client));
}

// An attempt that fails leaves nothing half off, and says in words what it was.
TEST(Channels, EveryRefusalIsWordsAndLeavesAllOn) {
  const struct {
    uint32_t status;
    const char* name;
    Then then;
  } kRefusals[] = {
      {0x03, "BUSY_RETRY", Then::kRetry},
      {0x0f, "GPU_IS_LOST", Then::kLost},
      {0x10, "GPU_IN_FULLCHIP_RESET", Then::kLost},
      {0x11, "GPU_NOT_FULL_POWER", Then::kRetry},
      {0x12, "GPU_UUID_NOT_FOUND", Then::kLost},
      {0x17, "IN_USE", Then::kRetry},
      {0x1a, "INSUFFICIENT_RESOURCES", Then::kRetry},
      {0x1b, "INSUFFICIENT_PERMISSIONS", Then::kOtherWay},
      {0x1f, "INVALID_ARGUMENT", Then::kOtherWay},
      {0x21, "INVALID_CHANNEL", Then::kLook},
      {0x22, "INVALID_CLASS", Then::kOtherWay},
      {0x23, "INVALID_CLIENT", Then::kLook},
      {0x24, "INVALID_COMMAND", Then::kOtherWay},
      {0x31, "INVALID_OBJECT", Then::kLook},
      {0x33, "INVALID_OBJECT_HANDLE", Then::kLook},
      {0x36, "INVALID_OBJECT_PARENT", Then::kLook},
      {0x3a, "INVALID_PARAM_STRUCT", Then::kOtherWay},
      {0x40, "INVALID_STATE", Then::kLook},
      {0x56, "NOT_SUPPORTED", Then::kOtherWay},
      {0x57, "OBJECT_NOT_FOUND", Then::kLook},
      {0x62, "RESET_REQUIRED", Then::kLost},
      {0x65, "TIMEOUT", Then::kKill},
      {0x66, "TIMEOUT_RETRY", Then::kRetry},
      {0xffff, "GENERIC", Then::kOtherWay},
      {0x7777, "in no table", Then::kOtherWay},
      {0xffffffff, "without a status", Then::kOtherWay},
  };
  for (const auto& refusal : kRefusals)
    for (const Command command : {Command::kDisableChannels, Command::kSchedule, Command::kPreempt}) {
      SCOPED_TRACE(testing::Message() << refusal.name << " of " << static_cast<uint32_t>(command));
      Model model({.firmware_disables = command == Command::kDisableChannels});
      Process process(model);
      process.Group(4);
      process.Group(2);
      model.Refuse(command, refusal.status);
      if (command == Command::kDisableChannels) model.Refuse(Command::kSchedule, 0x56);
      ChannelSwitch turns(*process.file, 580);
      const Outcome off = turns.Off(process.Seen());
      EXPECT_FALSE(off.ok());
      EXPECT_FALSE(turns.is_off());
      const Answer refused{0, refusal.status, 0};
      EXPECT_EQ(WhatThen(refused), refusal.then);
      EXPECT_THAT(Words(refused), HasSubstr(refusal.name));
      EXPECT_THAT(off.Words(), Not(IsEmpty()));
      if (refusal.then != Then::kLost) {
        EXPECT_EQ(process.Running(), 6);
      }
    }
}

TEST(Channels, ABusyDriverIsAskedAgain) {
  Model model;
  Process process(model);
  process.Group(4);
  model.Refuse(Command::kDisableChannels, 0x03, 2);
  ChannelSwitch turns(*process.file, 580);
  EXPECT_TRUE(turns.Off(process.Seen()).ok());
  EXPECT_EQ(process.Running(), 0);
  EXPECT_EQ(model.calls(Command::kDisableChannels), 3);
}

TEST(Channels, TheSecondOfTwoCallsRefusedLetsTheFirstOnAgain) {
  Model model({.firmware_disables = false});
  Process process(model);
  process.Group(4);
  process.Group(2);
  // A channel that is not bound yet: its group may be unscheduled, and not scheduled again.
  process.Channel(process.Seen().groups.back(), false, /*bound=*/false);
  ChannelSwitch turns(*process.file, 580);
  ASSERT_TRUE(turns.Off(process.Seen()).ok());
  const Outcome on = turns.On(process.Seen());
  EXPECT_EQ(on.answer.status, 0x40u) << on.Words();
  EXPECT_TRUE(turns.is_off()) << "it is not all on: once more when the channel is bound";
  model.Bind(process.client, process.channels.back());
  EXPECT_TRUE(turns.On(process.Seen()).ok());
  EXPECT_EQ(process.Running(), 7);
}

TEST(Channels, ALostGpuIsLostToAll) {
  Model model;
  Process process(model);
  process.Group(4);
  model.Lose();
  ChannelSwitch turns(*process.file, 580);
  const Outcome off = turns.Off(process.Seen());
  EXPECT_EQ(WhatThen(off.answer), Then::kLost);
  EXPECT_THAT(off.Words(), HasSubstr("Xid"));
}

TEST(Channels, ErrorsOfTheIoctlAreWordsToo) {
  const struct {
    int error;
    Then then;
  } kErrors[] = {{EINVAL, Then::kOtherWay}, {EIO, Then::kLost},    {ENODEV, Then::kLost}, {EPERM, Then::kOtherWay},
                 {ENOTTY, Then::kOtherWay}, {EINTR, Then::kRetry}, {EBADF, Then::kLook},  {EDOM, Then::kOtherWay}};
  for (const auto& row : kErrors) {
    Model model;
    Process process(model);
    process.Group(1);
    model.FailIoctl(row.error);
    ChannelSwitch turns(*process.file, 580);
    const Outcome off = turns.Off(process.Seen());
    EXPECT_EQ(off.answer.error, row.error);
    EXPECT_EQ(WhatThen(off.answer), row.then) << row.error;
    EXPECT_THAT(off.Words(), HasSubstr("ioctl"));
  }
}

TEST(Channels, ControlsThatAreForOthersAreRefused) {
  Model model;
  Process process(model);
  process.Group(1);
  const ClientChannels seen = process.Seen();
  DisableChannels params{};
  params.event = 1;
  EXPECT_EQ(
      process.file->Control(seen.client, seen.subdevice, Command::kDisableChannels, &params, sizeof params).status,
      0x1bu);
  params = {};
  params.count = 65;
  EXPECT_EQ(
      process.file->Control(seen.client, seen.subdevice, Command::kDisableChannels, &params, sizeof params).status,
      0x1fu);
  EXPECT_EQ(
      process.file->Control(seen.client, seen.compute_group, Command::kDisableChannels, &params, sizeof params).status,
      0x31u);
  constexpr auto kInterleave = static_cast<Command>(0xa06c0107);
  EXPECT_EQ(process.file->Control(seen.client, seen.compute_group, kInterleave, &params, 4).status, 0x1bu);
  Process other(model);
  other.Group(1);
  params = {};
  params.disable = params.count = 1;
  params.clients[0] = seen.client;
  params.channels[0] = seen.channels[0];
  const ClientChannels others = other.Seen();
  EXPECT_EQ(
      other.file->Control(others.client, others.subdevice, Command::kDisableChannels, &params, sizeof params).status,
      0x23u)
      << "a client disables its own channels only";
}

TEST(Channels, TheVersionOfADriverIsRead) {
  EXPECT_EQ(
      MajorVersion("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.142  Release Build  (root@host)  Fri"),
      580u);
  EXPECT_EQ(MajorVersion("570.86.15"), 570u);
  EXPECT_EQ(MajorVersion("GCC version:  gcc version 12.2.0"), std::nullopt);
  EXPECT_EQ(MajorVersion(""), std::nullopt);
  EXPECT_EQ(TraitsOf(999).schedule_bytes, 3u);
  EXPECT_EQ(TraitsOf(0).schedule_bytes, 2u);
}

TEST(Channels, TheirTextIsReadAgain) {
  Model model;
  Process process(model);
  process.Group(3);
  process.Group(2, false);
  const ClientChannels seen = process.Seen();
  const auto read = ReadChannels(ChannelsText(seen));
  ASSERT_TRUE(read);
  EXPECT_EQ(ChannelsText(*read), ChannelsText(seen));
  EXPECT_EQ(read->channels, seen.channels);
}

TEST(Channels, OtherTextIsNone) {
  for (const char* wrong :
       {"", "channels", "channels 3 1 2", "channels 3 1 2 4 groups", "channels 3 1 2 4 groups 1 channels 1",
        "channels 4294967295 1 2 4 groups channels compute", "channels -1 1 2 4 groups channels compute",
        "channels 3 1 2 4 channels groups compute", "channels 3 1 2 4 7 groups channels compute",
        "channels 3 1 2 4 groups x channels compute", "channels 3 1 2 99999999999 groups channels compute"})
    EXPECT_FALSE(ReadChannels(wrong)) << wrong;
  std::string many = "channels 3 1 2 4 groups channels";
  for (size_t n = 0; n <= kMostListed; ++n) many += " 1";
  EXPECT_FALSE(ReadChannels(many + " compute"));
  EXPECT_TRUE(ReadChannels("channels 3 1 2 4 groups channels compute"));
}

}  // namespace
}  // namespace vgpud::rm
