// SPDX-License-Identifier: Apache-2.0
#include "services/date_clock.hpp"

#include <tidegate/http/date.hpp>

#include <ctime>

namespace tidegate::gateway {

void date_clock::read(instant now) {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  time_ = std::chrono::sys_seconds(std::chrono::seconds(time.tv_sec));
  until_ = now + std::chrono::nanoseconds(1'000'000'000 - time.tv_nsec);
  line_.assign("Date: ");
  http::append_http_date(line_, time_);
  line_.append("\r\n");
}

}  // namespace tidegate::gateway
