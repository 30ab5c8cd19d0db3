// SPDX-License-Identifier: Apache-2.0
#include "protocol/client.hpp"

#include <tidegate/base/number.hpp>

#include "protocol/callback_timer.hpp"
#include "protocol/pending_command.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::store_redis {

namespace {

using store::store_error;
using store::store_fault;

/// Host and port as a sentinel gives them; nothing when it is something else.
auto read_master(resp_value const& value) -> std::optional<server_address> {
  if (value.items.size() != 2 || value.items[0].text.empty()) {
    return std::nullopt;
  }
  auto const port = parse_number<std::uint16_t>(value.items[1].text).value_or(0);
  return port != 0 ? std::optional(server_address{value.items[0].text, port}) : std::nullopt;
}

/// The master that sentinels name, which must say itself that it is one. They are asked at first,
/// every now and then, and soon when the master is not there.
class sentinel_client final : public client {
 public:
  sentinel_client(engine::loop& on, server_url const& url, connection_options options);
  ~sentinel_client() override;
  sentinel_client(sentinel_client const&) = delete;
  auto operator=(sentinel_client const&) -> sentinel_client& = delete;

  void send(std::string_view key, command request, answer_function answer) override;
  [[nodiscard]] auto is_up(std::string_view key) const -> bool override;
  [[nodiscard]] auto error_text(std::string_view key) const -> std::string override;

 private:
  void send_pending(std::unique_ptr<pending_command> pending);
  void take(std::unique_ptr<pending_command> pending, answer got);
  void refresh();
  void take_master(answer const& got);
  void connect(server_address const& master);
  void next_sentinel(std::string const& why);

  engine::loop& loop_;
  connection_options for_sentinels_;
  connection_options for_master_;
  std::vector<server_address> sentinels_;
  std::string master_name_;
  std::size_t at_ = 0;       // which sentinel is asked
  std::size_t refused_ = 0;  // how many gave no master, one after the other
  std::unique_ptr<connection> sentinel_;
  std::unique_ptr<connection> master_;
  bool is_refreshing_ = false;
  bool is_ending_ = false;
  std::string error_text_;
  retry_queue retries_;
  callback_timer refresh_timer_;
};

sentinel_client::sentinel_client(engine::loop& on, server_url const& url,
                                 connection_options options)
    : loop_(on),
      for_sentinels_(options),
      for_master_(std::move(options)),
      sentinels_(url.servers),
      master_name_(url.master_name),
      error_text_("no sentinel has said who the master is"),
      retries_(
          on, for_master_.commands_max,
          [this](std::unique_ptr<pending_command> pending) { send_pending(std::move(pending)); }),
      refresh_timer_(on, [this] { refresh(); }) {
  for_sentinels_.login = url.sentinel_login;
  for_sentinels_.database = 0;
  for_master_.server = {};
  for_master_.must_be_master = true;
  refresh_timer_.set_in(std::chrono::milliseconds(0));
}

sentinel_client::~sentinel_client() {
  is_ending_ = true;
  master_.reset();
  sentinel_.reset();
  retries_.fail({store_fault::stopped, "the connections are being closed"});
}

void sentinel_client::send(std::string_view /*key*/, command request, answer_function answer) {
  send_pending(std::make_unique<pending_command>(std::move(request), std::move(answer)));
}

auto sentinel_client::is_up(std::string_view /*key*/) const -> bool {
  return master_ != nullptr ? master_->is_up() : refused_ < sentinels_.size();
}

auto sentinel_client::error_text(std::string_view /*key*/) const -> std::string {
  return master_ != nullptr ? master_->error_text() : error_text_;
}

void sentinel_client::send_pending(std::unique_ptr<pending_command> pending) {
  if (master_ != nullptr) {
    auto const& request = pending->request;
    master_->send(request, [this, pending = std::move(pending)](answer got) mutable {
      take(std::move(pending), std::move(got));
    });
  } else if (refused_ >= sentinels_.size()) {
    pending->answer(failure(store_error{store_fault::unavailable, error_text_}));
  } else {
    retries_.add(std::move(pending), error_text_);
  }
}

void sentinel_client::take(std::unique_ptr<pending_command> pending, answer got) {
  if (!got) {
    auto error = std::move(got).error();
    if (error.fault == store_fault::stopped && !is_ending_) {
      error.fault = store_fault::unavailable;  // there is another master
    }
    pending->answer(failure(std::move(error)));
    return;
  }
  // It was made a replica meanwhile, and has done nothing.
  if (auto const& first = first_of(pending->request, *got);
      first.is_error("READONLY") && !is_ending_) {
    auto const why = first.text;
    connect(for_master_.server);
    refresh_timer_.set_within(std::chrono::milliseconds(0));
    retries_.add(std::move(pending), why);
    return;
  }
  pending->answer(std::move(got));
}

void sentinel_client::refresh() {
  refresh_timer_.set_in(master_ != nullptr && master_->is_connected()
                            ? for_master_.refresh_interval
                            : for_master_.recovery_interval);
  if (is_refreshing_) {
    return;
  }
  if (sentinel_ != nullptr && !sentinel_->is_up()) {
    next_sentinel(sentinel_->error_text());
  }
  if (sentinel_ == nullptr) {
    for_sentinels_.server = sentinels_[at_];
    sentinel_ = std::make_unique<connection>(loop_, for_sentinels_);
  }
  is_refreshing_ = true;
  sentinel_->send({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name_}, [this](answer const& got) {
    is_refreshing_ = false;
    if (!is_ending_) {
      take_master(got);
    }
  });
}

void sentinel_client::take_master(answer const& got) {
  auto const name = to_string(sentinels_[at_]);
  if (!got) {
    next_sentinel(got.error().text);
    return;
  }
  auto const master = read_master(*got);
  if (!master) {
    next_sentinel(name + ": " +
                  (got->is_error() ? got->text : "it knows no master \"" + master_name_ + "\""));
    return;
  }
  refused_ = 0;
  if (master_ == nullptr || *master != for_master_.server) {
    connect(*master);
  }
}

void sentinel_client::connect(server_address const& master) {
  master_ = nullptr;  // before there is another
  for_master_.server = master;
  master_ = std::make_unique<connection>(loop_, for_master_);
  master_->on_change([this] {
    if (!is_ending_ && !master_->is_connected()) {
      refresh_timer_.set_within(std::chrono::milliseconds(0));
    }
  });
  retries_.send_all();
}

void sentinel_client::next_sentinel(std::string const& why) {
  error_text_ = why;
  refused_ = std::min(refused_ + 1, sentinels_.size());
  at_ = (at_ + 1) % sentinels_.size();
  sentinel_ = nullptr;
  refresh_timer_.set_within(for_master_.recovery_interval);
}

}  // namespace

auto make_sentinel_client(engine::loop& on, server_url const& url, connection_options options)
    -> std::unique_ptr<client> {
  return std::make_unique<sentinel_client>(on, url, std::move(options));
}

}  // namespace tidegate::store_redis
