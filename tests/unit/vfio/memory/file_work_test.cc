// SPDX-License-Identifier: Apache-2.0
#include "vfio/memory/file_work.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace vgpud::vfio {
namespace {

// A file whose client lets go of it when it likes.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

FileWork::Client NewClient() { return std::make_shared<int>(0); }

TEST(FileWork, WorksInOrderAndSaysWhenItIsDone) {
  EventLoop loop;
  FileWork files(loop);
  const auto client = NewClient();
  auto said = std::make_shared<std::string>();
  for (const char* word : {"a", "b", "c"}) files.Do(client, [said, word] { *said += word; });
  files.Do(
      client, [] {}, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(*said, "abc");
}

TEST(FileWork, ClientThatHoldsItsFileHoldsNobodyElseUp) {
  EventLoop loop;
  FileWork files(loop);
  auto gate = std::make_shared<Gate>();
  const auto held = NewClient(), other = NewClient();
  bool held_done = false;
  files.Do(
      held, [gate] { gate->Pass(); }, [&] { held_done = true; });
  files.Do(
      other, [] {}, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(held_done);
  gate->Open();
  files.Do(
      held, [] {}, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_TRUE(held_done);
}

TEST(FileWork, ClientLivesAsLongAsThereIsWorkForIt) {
  EventLoop loop;
  FileWork files(loop);
  auto gate = std::make_shared<Gate>();
  auto client = NewClient();
  const std::weak_ptr<const void> alive = client;
  files.Do(
      std::move(client), [gate] { gate->Pass(); }, [&] { loop.Stop(); });
  EXPECT_FALSE(alive.expired());
  gate->Open();
  loop.Run();
  files.Do(
      NewClient(), [] {}, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_TRUE(alive.expired());
}

// To close a file can take as long as to write to it.
TEST(FileWork, WhatTheWorkHoldsIsLetGoOfOnItsThread) {
  EventLoop loop;
  FileWork files(loop);
  auto let_go_by = std::make_shared<std::thread::id>();
  std::shared_ptr<void> file(nullptr, [let_go_by](void*) { *let_go_by = std::this_thread::get_id(); });
  auto worked_by = std::make_shared<std::thread::id>();
  files.Do(
      NewClient(), [file = std::move(file), worked_by] { *worked_by = std::this_thread::get_id(); },
      [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(*let_go_by, *worked_by);
  EXPECT_NE(*let_go_by, std::this_thread::get_id());
}

TEST(FileWork, NobodyIsCalledWhenItIsGone) {
  EventLoop loop;
  auto gate = std::make_shared<Gate>();
  auto finished = std::make_shared<Gate>();
  bool called = false;
  {
    FileWork files(loop);
    const auto client = NewClient();
    files.Do(
        client, [gate] { gate->Pass(); }, [&] { called = true; });
    files.Do(client, [finished] { finished->Open(); });
  }
  gate->Open();
  finished->Pass();
  const auto timer = loop.Timer([&] { loop.Stop(); });
  timer->Arm(std::chrono::nanoseconds{1});
  loop.Run();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace vgpud::vfio
