// SPDX-License-Identifier: Apache-2.0
// Tests that need a process of their own: this program again, with one of its tests and a fake VF for it.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/scratch_dir.h"
#include "tests/unit/shim/fake_vf_connection.h"

class OwnProcess : public testing::Test {
 protected:
  void SetUp() override {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path_.c_str());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(0, bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address));
    ASSERT_EQ(0, listen(listener_, 4));
    server_ = std::thread([this] {
      for (int connection; (connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        vgpud::ServeConnection(connection);
        close(connection);
      }
    });
  }
  void TearDown() override {
    shutdown(listener_, SHUT_RDWR);
    server_.join();
    close(listener_);
  }
  // Does that test pass in a process with these variables and no others? They have to have SHIM_CHILD.
  static bool Passes(const std::string& test, std::vector<std::string> variables) {
    if (const char* libraries = getenv("LD_LIBRARY_PATH"))
      variables.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string filter = "--gtest_filter=" + test;
    char program[] = "/proc/self/exe", brief[] = "--gtest_brief=1";
    char* const arguments[] = {program, filter.data(), brief, nullptr};
    pid_t child = -1;
    int status = -1;
    EXPECT_EQ(0, posix_spawn(&child, program, nullptr, nullptr, arguments, environment.data()));
    EXPECT_EQ(child, waitpid(child, &status, 0));
    return status == 0;
  }
  const vgpud::ScratchDir directory_;
  const std::string path_ = directory_.path() + "/vf.sock";  // of the VF's socket
  int listener_ = -1;
  std::thread server_;
};
