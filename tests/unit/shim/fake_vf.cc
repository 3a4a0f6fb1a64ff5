// SPDX-License-Identifier: Apache-2.0
// fake_vf SOCKET: a VF's channel socket served by FakeExecutors, one for each connection, until it is killed.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/unit/shim/fake_vf_connection.h"

int main(int argc, char** argv) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) return 2;
  strcpy(address.sun_path, argv[1]);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 4) != 0) {
    perror("fake_vf");
    return 1;
  }
  puts("ready");
  fflush(stdout);
  for (;;) {
    const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return 1;
    std::thread([connection] {
      vgpud::ServeConnection(connection);
      close(connection);
    }).detach();
  }
}
