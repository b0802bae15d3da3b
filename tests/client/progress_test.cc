#include "client/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/client/waitable_buffer.h"

namespace pagoda::client {
namespace {

TEST(Progress, SaysWhatIsWaitedForAndWipesItsLine) {
  std::istringstream in;
  std::ostringstream out;
  WaitableBuffer buffer;
  std::ostream err(&buffer);
  Interrupts interrupts;
  Console console{
      .in = in, .out = out, .err = err, .interrupts = interrupts, .err_is_terminal = true};
  Progress progress(console, "waiting for the server");
  buffer.AwaitText("waiting for the server 1.");
  progress.Stop();
  EXPECT_TRUE(buffer.str().ends_with("\r\x1b[K"));
}

TEST(Progress, IsSilentWithoutATerminal) {
  std::istringstream in;
  std::ostringstream out, err;
  Interrupts interrupts;
  Console console{.in = in, .out = out, .err = err, .interrupts = interrupts};
  Progress(console, "x").Stop();
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace pagoda::client
