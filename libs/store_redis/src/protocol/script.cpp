// SPDX-License-Identifier: Apache-2.0
#include "protocol/script.hpp"

#include <utility>

namespace tidegate::store_redis {

namespace {

/// `verb` is EVAL with a text or EVALSHA with a name.
auto call(std::string_view verb, std::string_view script, word_list const& keys,
          word_list const& arguments, command const& then = {}) -> command {
  command made{verb, script};
  made.add(static_cast<std::int64_t>(keys.size()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    made.add(keys[i]);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    made.add(arguments[i]);
  }
  made.then(then);
  return made;
}

/// Runs a script of which the name is not known yet, and asks for the name on the way.
void run_and_load(client& on, script& called, word_list const& keys, word_list const& arguments,
                  answer_function answer, command const& then) {
  auto by_text = call("EVAL", called.text(), keys, arguments, then);
  by_text.then({"SCRIPT", "LOAD", called.text()});
  on.send(keys[0], std::move(by_text),
          [&called, is_alone = then.count() == 0,
           answer = std::move(answer)](store_redis::answer got) mutable {
            if (got) {
              called.take_name(got->items.back());
              got->items.pop_back();
              if (is_alone) {
                auto only = std::move(got->items.front());
                got = std::move(only);
              }
            }
            answer(std::move(got));
          });
}

}  // namespace

void script::take_name(resp_value const& loaded) {
  if (loaded.kind == resp_kind::blob || loaded.kind == resp_kind::simple_string) {
    name_ = loaded.text;
  }
}

void run(client& on, script& called, word_list keys, word_list arguments, answer_function answer,
         command then) {
  if (called.name().empty()) {
    run_and_load(on, called, keys, arguments, std::move(answer), then);
    return;
  }
  auto by_name = call("EVALSHA", called.name(), keys, arguments, then);
  auto const key = std::string(keys[0]);
  on.send(key, std::move(by_name),
          [&on, &called, keys = std::move(keys), arguments = std::move(arguments),
           answer = std::move(answer), then = std::move(then)](store_redis::answer got) mutable {
            auto const* const of_script = !got                ? nullptr
                                          : then.count() == 0 ? &*got
                                                              : &got->items.front();
            if (of_script == nullptr || !of_script->is_error("NOSCRIPT")) {
              answer(std::move(got));
              return;
            }
            on.send(keys[0], call("EVAL", called.text(), keys, arguments, then), std::move(answer));
          });
}

void run_in_order(client& on, script const& called, word_list const& keys,
                  word_list const& arguments, answer_function answer) {
  on.send(keys[0], call("EVAL", called.text(), keys, arguments), std::move(answer));
}

}  // namespace tidegate::store_redis
