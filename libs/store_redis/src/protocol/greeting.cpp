// SPDX-License-Identifier: Apache-2.0
#include "protocol/greeting.hpp"

namespace tidegate::store_redis {

greeting::greeting(connection_options const& options) {
  command all{"HELLO", "3"};
  steps_ = {step::hello};
  if (!options.login.password.empty()) {
    all.add("AUTH");
    all.add(options.login.user.empty() ? "default" : options.login.user);
    all.add(options.login.password);
  }
  if (options.database != 0) {
    all.then(command{"SELECT"}.add(options.database));
    steps_.push_back(step::select);
  }
  if (options.must_be_master) {
    all.then(command{"ROLE"});
    steps_.push_back(step::role);
  }
  // It fails while the server still loads what it has on its disk.
  all.then(command{"PING"});
  steps_.push_back(step::ping);
  all.append_to(octets_);
}

auto greeting::take_reply(resp_value const& value) -> result<bool, std::string> {
  auto const awaited = steps_.front();
  steps_.pop_front();
  if (value.is_error()) {
    return failure(value.text);
  }
  if (awaited == step::role && (value.items.empty() || value.items[0].text != "master")) {
    return failure(std::string("it is not the master"));
  }
  return steps_.empty();
}

}  // namespace tidegate::store_redis
