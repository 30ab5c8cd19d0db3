// SPDX-License-Identifier: Apache-2.0
#include "observe/prometheus.hpp"
#include "observe/prometheus_text.hpp"

namespace tidegate::gateway {

void append_consumers(std::string& out, consumer_figures const& consumers) {
  if (!consumers.are_used) {
    return;
  }
  prometheus::single(out, "tidegate_consumers", "gauge", "Consumers that may use the API.",
                     static_cast<double>(consumers.consumers));
  prometheus::single(out, "tidegate_consumer_keys", "gauge", "Their API keys.",
                     static_cast<double>(consumers.keys));
  prometheus::single(
      out, "tidegate_consumers_last_reload_successful", "gauge",
      "Whether the file of consumers could be read when it last changed; 1 before that.",
      consumers.last_reload_is_good ? 1 : 0);
  prometheus::single(out, "tidegate_consumers_reload_failures_total", "counter",
                     "Changes of the file of consumers that could not be read.",
                     static_cast<double>(consumers.reload_failures));
}

}  // namespace tidegate::gateway
