// SPDX-License-Identifier: Apache-2.0
#include "protocol/client.hpp"

#include "protocol/callback_timer.hpp"
#include "protocol/cluster_slots.hpp"
#include "protocol/pending_command.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::store_redis {

namespace {

using store::store_error;
using store::store_fault;

/// A node that was in no map for so long has nothing left to answer.
constexpr unsigned unused_max = 2;

/// What passes by itself, and did nothing.
auto is_passing(resp_value const& error) -> bool {
  return error.is_error("TRYAGAIN") || error.is_error("CLUSTERDOWN") || error.is_error("LOADING") ||
         error.is_error("MASTERDOWN");
}

/// The masters of a Redis Cluster. Asks any of them for the map of slots: at first, every now and
/// then, and soon when something is not as the map says.
class cluster_client final : public client {
 public:
  cluster_client(engine::loop& on, server_url const& url, connection_options options);
  ~cluster_client() override;
  cluster_client(cluster_client const&) = delete;
  auto operator=(cluster_client const&) -> cluster_client& = delete;

  void send(std::string_view key, command request, answer_function answer) override;
  [[nodiscard]] auto is_up(std::string_view key) const -> bool override;
  [[nodiscard]] auto error_text(std::string_view key) const -> std::string override;

 private:
  struct node {
    server_address address;
    std::unique_ptr<connection> to;
    bool is_seed = false;
    unsigned unused = 0;  // in so many maps one after the other
  };

  [[nodiscard]] auto node_at(server_address const& address) -> node*;
  [[nodiscard]] auto node_of(std::uint16_t slot) const -> node* { return slots_[slot]; }
  void send_pending(std::unique_ptr<pending_command> pending);
  void send_to(std::unique_ptr<pending_command> pending, node& where, bool is_asking);
  void take(std::unique_ptr<pending_command> pending, server_address const& from, answer got);
  void refresh();
  void take_map(server_address const& from, answer const& got);
  void set_refresh_timer();
  void forget_unused();
  [[nodiscard]] auto all_down() const -> bool;

  engine::loop& loop_;
  connection_options options_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::array<node*, cluster_slots> slots_{};
  bool has_map_ = false;
  bool is_refreshing_ = false;
  bool is_stale_ = true;  // a server said that the map is not right
  bool is_ending_ = false;
  std::size_t next_ = 0;  // which node to ask for the map
  std::string error_text_;
  retry_queue retries_;
  callback_timer refresh_timer_;
};

cluster_client::cluster_client(engine::loop& on, server_url const& url, connection_options options)
    : loop_(on),
      options_(std::move(options)),
      retries_(
          on, options_.commands_max,
          [this](std::unique_ptr<pending_command> pending) { send_pending(std::move(pending)); }),
      refresh_timer_(on, [this] { refresh(); }) {
  for (auto const& server : url.servers) {
    node_at(server)->is_seed = true;
  }
  refresh_timer_.set_in(options_.recovery_interval);
}

cluster_client::~cluster_client() {
  is_ending_ = true;
  nodes_.clear();
  retries_.fail({store_fault::stopped, "the connections are being closed"});
}

auto cluster_client::node_at(server_address const& address) -> node* {
  auto const found = std::ranges::find(
      nodes_, address, [](auto const& each) -> auto const& { return each->address; });
  if (found != nodes_.end()) {
    return found->get();
  }
  if (nodes_.size() >= 2 * cluster_nodes_max) {
    return nullptr;
  }
  auto options = options_;
  options.server = address;
  auto& made = *nodes_.emplace_back(
      new node{.address = address, .to = std::make_unique<connection>(loop_, std::move(options))});
  made.to->on_change([this, of = &made] {
    // The first one that is there is asked for the map; when one goes, the others know who takes
    // over.
    if (!is_ending_ && (!has_map_ || !of->to->is_connected())) {
      refresh_timer_.set_within(std::chrono::milliseconds(0));
    }
  });
  return &made;
}

auto cluster_client::all_down() const -> bool {
  return std::ranges::none_of(nodes_, [](auto const& each) { return each->to->is_up(); });
}

void cluster_client::send(std::string_view key, command request, answer_function answer) {
  send_pending(
      std::make_unique<pending_command>(std::move(request), std::move(answer), slot_of(key)));
}

auto cluster_client::is_up(std::string_view key) const -> bool {
  auto const* const where = node_of(slot_of(key));
  return where != nullptr ? where->to->is_up() : !has_map_ && !all_down();
}

auto cluster_client::error_text(std::string_view key) const -> std::string {
  auto const* const where = node_of(slot_of(key));
  if (where != nullptr && !where->to->error_text().empty()) {
    return where->to->error_text();
  }
  return has_map_ ? "no server of the cluster has this key" : error_text_;
}

void cluster_client::send_pending(std::unique_ptr<pending_command> pending) {
  auto* const where = node_of(pending->slot);
  if (where != nullptr) {
    send_to(std::move(pending), *where, false);
    return;
  }
  if (all_down()) {
    auto const why = nodes_.empty() ? error_text_ : nodes_.front()->to->error_text();
    pending->answer(failure(store_error{store_fault::unavailable, why}));
    return;
  }
  is_stale_ = true;
  retries_.add(std::move(pending), has_map_ ? "no server of the cluster has this key"
                                            : "no server of the cluster has said where keys are");
}

void cluster_client::send_to(std::unique_ptr<pending_command> pending, node& where,
                             bool is_asking) {
  auto const& request = pending->request;
  auto const from = where.address;
  if (!is_asking) {
    where.to->send(request, [this, from, pending = std::move(pending)](answer got) mutable {
      take(std::move(pending), from, std::move(got));
    });
    return;
  }
  where.to->send(command{"ASKING"}.then(request),
                 [this, from, pending = std::move(pending)](answer got) mutable {
                   if (got && !got->items.empty()) {
                     got->items.erase(got->items.begin());
                     if (pending->request.count() == 1) {
                       auto only = std::move(got->items.front());
                       got = std::move(only);
                     }
                   }
                   take(std::move(pending), from, std::move(got));
                 });
}

void cluster_client::take(std::unique_ptr<pending_command> pending, server_address const& from,
                          answer got) {
  if (!got) {
    auto error = std::move(got).error();
    if (error.fault == store_fault::stopped && !is_ending_) {
      error.fault = store_fault::unavailable;  // only that server has left the cluster
    }
    pending->answer(failure(std::move(error)));
    return;
  }
  auto const& first = first_of(pending->request, *got);
  if (!first.is_error() || is_ending_) {
    pending->answer(std::move(got));
    return;
  }
  if (auto const other = read_redirection(first, from)) {
    auto* const where = node_at(other->to);
    if (where == nullptr || pending->tries_left == 0) {
      pending->answer(failure(store_error{store_fault::unavailable, first.text}));
      return;
    }
    --pending->tries_left;
    where->unused = 0;
    if (other->is_moved) {
      slots_[other->slot] = where;
      is_stale_ = true;
      refresh_timer_.set_within(options_.recovery_interval);
    }
    send_to(std::move(pending), *where, !other->is_moved);
  } else if (is_passing(first)) {
    is_stale_ = true;
    refresh_timer_.set_within(options_.recovery_interval);
    auto const why = first.text;
    retries_.add(std::move(pending), why);
  } else {
    pending->answer(std::move(got));
  }
}

void cluster_client::refresh() {
  set_refresh_timer();
  if (is_refreshing_) {
    return;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto& each = *nodes_[next_++ % nodes_.size()];
    if (each.to->is_connected()) {
      is_refreshing_ = true;
      each.to->send({"CLUSTER", "SLOTS"},
                    [this, from = each.address](answer const& got) { take_map(from, got); });
      return;
    }
    error_text_ = each.to->error_text();
  }
}

void cluster_client::set_refresh_timer() {
  bool const is_well = has_map_ && !is_stale_ && std::ranges::all_of(nodes_, [](auto const& each) {
                         return each->to->is_connected() || each->unused > 0;
                       });
  refresh_timer_.set_in(is_well ? options_.refresh_interval : options_.recovery_interval);
}

void cluster_client::take_map(server_address const& from, answer const& got) {
  is_refreshing_ = false;
  if (is_ending_ || !got) {
    return;
  }
  auto const map = read_cluster_slots(*got, from);
  if (!map || map->empty()) {
    error_text_ = to_string(from) + ": " + (map ? "it knows of no slots" : map.error());
    return;
  }
  decltype(slots_) slots{};
  for (auto& each : nodes_) {
    ++each->unused;
  }
  for (auto const& range : *map) {
    auto* const where = node_at(range.master);
    if (where == nullptr) {
      error_text_ = to_string(from) + ": it knows of too many servers";
      return;
    }
    where->unused = 0;
    std::fill(slots.begin() + range.first, slots.begin() + range.last + 1, where);
  }
  slots_ = slots;
  has_map_ = true;
  is_stale_ = false;
  forget_unused();
  set_refresh_timer();
  retries_.send_all();
}

void cluster_client::forget_unused() {
  // Seeds stay: when everything else has changed, they may know.
  auto const gone = std::ranges::stable_partition(
      nodes_, [](auto const& each) { return each->is_seed || each->unused <= unused_max; });
  std::vector<std::unique_ptr<node>> going(std::make_move_iterator(gone.begin()),
                                           std::make_move_iterator(gone.end()));
  nodes_.erase(gone.begin(), gone.end());
  for (auto const& each : going) {
    std::ranges::replace(slots_, each.get(), static_cast<node*>(nullptr));
  }
}

}  // namespace

auto make_cluster_client(engine::loop& on, server_url const& url, connection_options options)
    -> std::unique_ptr<client> {
  return std::make_unique<cluster_client>(on, url, std::move(options));
}

}  // namespace tidegate::store_redis
