// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/scim/walk.hpp>
#include <tidegate/store/directory.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// What every directory promises. A back end says how one is made, by a type with a member
/// `make(model)` that returns a fresh directory, and instantiates the suite `directory_contract`
/// with it.
namespace tidegate::TIDEGATE_ABI::store::directory_contract_support {

using scim::model;
using scim::model_type;

[[nodiscard]] inline auto make_model(std::vector<std::string> const& indexes = {})
    -> std::shared_ptr<model const> {
  auto made = model::make({}, {}, indexes);
  EXPECT_TRUE(made.has_value());
  return std::make_shared<model const>(*std::move(made));
}

/// Runs `work` on a reader and waits for what it returns.
template <class Work>
auto reading(directory& where, std::string_view tenant, Work work)
    -> decltype(work(std::declval<directory_reader&>())) {
  std::promise<decltype(work(std::declval<directory_reader&>()))> promise;
  where.read(tenant, [&](directory_outcome<directory_reader*> reader) {
    EXPECT_TRUE(reader.has_value()) << (reader ? "" : reader.error().text);
    if constexpr (std::is_void_v<decltype(work(**reader))>) {
      work(**reader);
      promise.set_value();
    } else {
      promise.set_value(work(**reader));
    }
  });
  return promise.get_future().get();
}

/// Runs `transaction` on a writer and waits until it is durable.
[[nodiscard]] inline auto writing(directory& where, std::string_view tenant,
                                  directory::write_transaction transaction)
    -> directory_outcome<void> {
  std::promise<directory_outcome<void>> promise;
  where.write(tenant, std::move(transaction),
              [&](directory_outcome<void> made) { promise.set_value(std::move(made)); });
  return promise.get_future().get();
}

/// The values of a user that the tests change.
struct person {
  std::string id;
  std::string user_name;
  std::string display_name{};  // empty: none
  std::vector<std::string> emails{};
  std::string title{};  // is not indexed
  std::string changed = "2026-01-01T00:00:00Z";
};

[[nodiscard]] inline auto user_of(person const& p) -> json::value {
  json::object user{{"schemas", json::array{std::string(scim::user_schema)}},
                    {"id", p.id},
                    {"userName", p.user_name}};
  if (!p.display_name.empty()) {
    user.append("displayName", p.display_name);
  }
  if (!p.emails.empty()) {
    json::array emails;
    for (auto const& email : p.emails) {
      emails.emplace_back(json::object{{"value", email}, {"primary", &email == &p.emails.back()}});
    }
    user.append("emails", std::move(emails));
  }
  if (!p.title.empty()) {
    user.append("title", p.title);
  }
  user.append("meta", json::object{{"resourceType", "User"},
                                   {"created", "2026-01-01T00:00:00Z"},
                                   {"lastModified", p.changed}});
  return user;
}

[[nodiscard]] inline auto group_of(std::string const& id, std::string const& name) -> json::value {
  return json::object{{"schemas", json::array{std::string(scim::group_schema)}},
                      {"id", id},
                      {"displayName", name},
                      {"meta", json::object{{"resourceType", "Group"},
                                            {"created", "2026-01-01T00:00:00Z"},
                                            {"lastModified", "2026-01-01T00:00:00Z"}}}};
}

[[nodiscard]] inline auto insert(directory_writer& writer, model_type const& type,
                                 json::value const& resource) -> directory_outcome<std::uint64_t> {
  return writer.insert(type, *resource.find("id")->if_string(), to_string(resource),
                       index_entries(type, resource));
}

/// Inserts in a write of its own.
inline auto added(directory& where, std::string_view tenant, model_type const& type,
                  json::value const& resource) -> std::uint64_t {
  std::uint64_t rid = 0;
  auto const made = writing(where, tenant, [&](directory_writer& writer) {
    auto const given = insert(writer, type, resource);
    EXPECT_TRUE(given.has_value()) << (given ? "" : given.error().text);
    rid = given.value_or(0);
    return given.has_value();
  });
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text);
  return rid;
}

[[nodiscard]] inline auto text_in(directory& where, std::string_view tenant, model_type const& type,
                                  std::string_view id) -> std::string {
  return reading(where, tenant, [&](directory_reader& reader) -> std::string {
    auto const found = reader.find(type, id);
    EXPECT_TRUE(found.has_value());
    return found && *found ? (*found)->text : "none";
  });
}

[[nodiscard]] inline auto ids_of(std::vector<directory_row> const& rows)
    -> std::vector<std::string> {
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (auto const& row : rows) {
    ids.emplace_back(row.id);
  }
  return ids;
}

/// A directory of one tenant in plain containers, slow and obvious.
class plain_directory {
 public:
  struct resource {
    model_type const* type;
    std::uint64_t version = 1;
    json::value value;
    std::vector<std::pair<std::uint64_t, std::string>> members{};  // with what they are called
  };
  std::map<std::uint64_t, resource> resources;  // by rid

  void remove(std::uint64_t rid) {
    resources.erase(rid);
    for (auto& [group, r] : resources) {
      std::erase_if(r.members, [&](auto const& member) { return member.first == rid; });
    }
  }

  [[nodiscard]] auto id_of(std::uint64_t rid) const -> std::string {
    return *resources.at(rid).value.find("id")->if_string();
  }

  /// With what is kept beside it.
  [[nodiscard]] auto whole(std::uint64_t rid) const -> json::value {
    auto const& r = resources.at(rid);
    auto value = r.value;
    json::array members;
    for (auto const& [member, display] : r.members) {
      json::object one{{"value", id_of(member)}};
      if (!display.empty()) {
        one.append("display", display);
      }
      one.append("type", resources.at(member).type->definition.type().name);
      members.emplace_back(std::move(one));
    }
    if (!members.empty()) {
      value.if_object()->set("members", std::move(members));
    }
    json::array groups;
    for (auto const group : groups_of(rid)) {
      groups.emplace_back(json::object{{"value", id_of(group)},
                                       {"display", *resources.at(group).value.find("displayName")},
                                       {"type", "direct"}});
    }
    if (!groups.empty() && r.type->has_groups) {
      value.if_object()->set("groups", std::move(groups));
    }
    return value;
  }

  [[nodiscard]] auto groups_of(std::uint64_t rid) const -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> groups;
    for (auto const& [group, r] : resources) {
      if (std::any_of(r.members.begin(), r.members.end(),
                      [&](auto const& member) { return member.first == rid; })) {
        groups.push_back(group);
      }
    }
    return groups;
  }

  /// All that match, in ascending order.
  [[nodiscard]] auto matching(directory_query const& query) const -> std::vector<scim::position> {
    std::vector<scim::position> all;
    for (auto const& [rid, r] : resources) {
      if (r.type != query.type || rid > query.rid_max ||
          (query.filter != nullptr && !matches(*query.filter, whole(rid)))) {
        continue;
      }
      std::string key;
      for (auto const& entry : index_entries(*r.type, r.value)) {
        if (query.sort_index && entry.index == *query.sort_index && entry.sorts) {
          key = entry.key;
        }
      }
      all.push_back({key, rid});
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  [[nodiscard]] auto scan(directory_query const& query) const -> std::vector<scim::position> {
    auto all = matching(query);
    if (query.descending) {
      std::reverse(all.begin(), all.end());
    }
    bool const forward = query.scan.place.towards == scim::direction::forward;
    auto const& from = query.scan.place.from;
    auto const is_before_gap = [&](scim::position const& at) {
      bool const before = query.descending ? from->at < at : at < from->at;
      return before || (from->behind && at == from->at);
    };
    if (from) {
      std::erase_if(all, [&](scim::position const& at) { return is_before_gap(at) == forward; });
    }
    if (!forward) {
      std::reverse(all.begin(), all.end());
    }
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(
                                             std::min<std::uint64_t>(query.skip, all.size())));
    all.resize(std::min<std::size_t>(all.size(), query.scan.rows_max));
    return all;
  }
};

template <class Maker>
class directory_contract : public testing::Test {
 protected:
  std::shared_ptr<model const> model_ = make_model();
  model_type const& users_ = *model_->find("User");
  model_type const& groups_ = *model_->find("Group");

  [[nodiscard]] auto fresh() -> std::unique_ptr<directory> { return maker_.make(model_); }

 private:
  Maker maker_;
};
TYPED_TEST_SUITE_P(directory_contract);

TYPED_TEST_P(directory_contract, finds_what_was_inserted_and_nothing_else) {
  auto const where = this->fresh();
  auto const user = user_of({.id = "u1", .user_name = "Ann"});
  auto const rid = added(*where, "acme", this->users_, user);
  auto const group = group_of("g1", "all");
  added(*where, "acme", this->groups_, group);

  reading(*where, "acme", [&](directory_reader& reader) {
    auto const found = reader.find(this->users_, "u1");
    EXPECT_TRUE(found.has_value() && found->has_value());
    EXPECT_EQ((*found)->rid, rid);
    EXPECT_EQ((*found)->id, "u1");
    EXPECT_EQ((*found)->version, 1U);
    EXPECT_EQ((*found)->text, to_string(user));
    EXPECT_FALSE((*found)->maybe_in_groups);
    for (auto const* other : {"u2", "U1", "u", "", "g1"}) {
      EXPECT_FALSE(reader.find(this->users_, other).value().has_value()) << other;
    }
    auto const any = reader.find_any("g1");
    EXPECT_TRUE(any.has_value() && any->has_value());
    EXPECT_EQ((*any)->type, "Group");
    EXPECT_EQ((*any)->resource.text, to_string(group));
    EXPECT_FALSE(reader.find_any("x").value().has_value());
    EXPECT_EQ(reader.newest(this->users_).value(), rid);
  });
  EXPECT_EQ(text_in(*where, "other", this->users_, "u1"), "none") << "tenants are apart";
  EXPECT_EQ(reading(*where, "other",
                    [&](directory_reader& reader) { return *reader.newest(this->users_); }),
            0U);
}

TYPED_TEST_P(directory_contract, undoes_what_is_not_to_be_kept) {
  auto const where = this->fresh();
  auto const insert_one = [&](std::string const& id, bool keep) {
    return writing(*where, "acme", [&, id, keep](directory_writer& writer) {
      EXPECT_TRUE(insert(writer, this->users_, user_of({.id = id, .user_name = id})));
      EXPECT_TRUE(writer.find(this->users_, id)->has_value()) << "a transaction sees what it wrote";
      EXPECT_EQ(writer.count({.type = &this->users_})->total, id == "c" ? 2U : 1U);
      return keep;
    });
  };
  EXPECT_TRUE(insert_one("a", false)) << "to undo it is not an error";
  EXPECT_EQ(text_in(*where, "acme", this->users_, "a"), "none");
  EXPECT_TRUE(insert_one("b", true));
  EXPECT_TRUE(insert_one("c", false));
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.count({.type = &this->users_})->total, 1U);
    EXPECT_EQ(ids_of(reader.scan({.type = &this->users_, .scan = {{}, 9}})->rows),
              std::vector<std::string>{"b"});
    EXPECT_FALSE(reader.find(this->users_, "c")->has_value());
  });

  // Everything that a transaction can do, behind an insert.
  auto const all = added(*where, "acme", this->groups_, group_of("g", "All"));
  auto const before = text_in(*where, "acme", this->users_, "b");
  EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
    auto const first = insert(writer, this->users_, user_of({.id = "d", .user_name = "d"}));
    auto const second = insert(writer, this->users_, user_of({.id = "e", .user_name = "e"}));
    EXPECT_TRUE(writer.add_member(all, *first, "D"));
    EXPECT_TRUE(writer.add_member(all, *second, "E"));
    auto const renamed = user_of({.id = "d", .user_name = "renamed"});
    EXPECT_TRUE(writer.update(this->users_, *first, to_string(renamed),
                              index_entries(this->users_, renamed)));
    EXPECT_TRUE(writer.remove(this->users_, *first));
    auto const b = writer.find(this->users_, "b");
    EXPECT_TRUE(writer.remove(this->users_, (*b)->rid));
    return false;
  }));
  EXPECT_EQ(text_in(*where, "acme", this->users_, "b"), before);
  EXPECT_TRUE(insert_one("c", true));
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(ids_of(reader.scan({.type = &this->users_, .scan = {{}, 9}})->rows),
              (std::vector<std::string>{"b", "c"}));
    auto const sort = this->users_.find_index(*this->users_.definition.resolve("userName"));
    EXPECT_EQ(
        ids_of(reader.scan({.type = &this->users_, .sort_index = sort, .scan = {{}, 9}})->rows),
        (std::vector<std::string>{"b", "c"}));
    EXPECT_TRUE(reader.members(all, [](directory_member const& member) {
      ADD_FAILURE() << member.id;
      return true;
    }));
  });
}

TYPED_TEST_P(directory_contract, gives_no_rid_twice) {
  auto const where = this->fresh();
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    auto const rid = added(*where, "acme", this->users_,
                           user_of({.id = std::to_string(i), .user_name = std::to_string(i)}));
    EXPECT_GT(rid, last);
    last = rid;
    EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      EXPECT_TRUE(writer.remove(this->users_, rid));
      return true;
    }));
    reading(*where, "acme", [&](directory_reader& reader) {
      EXPECT_EQ(*reader.newest(this->users_), rid) << "also when it is gone";
      EXPECT_EQ(reader.count({.type = &this->users_})->total, 0U);
    });
  }
}

TYPED_TEST_P(directory_contract, finds_who_has_one_of_several_values) {
  auto const where = this->fresh();
  auto const index = *this->users_.find_index(*this->users_.definition.resolve("emails.value"));
  added(*where, "acme", this->users_,
        user_of({.id = "1", .user_name = "ann", .emails = {"a@x", "b@x", "c@x"}}));
  reading(*where, "acme", [&](directory_reader& reader) {
    for (auto const* const value : {"a@x", "b@x", "c@x"}) {
      auto const key = index_key(*this->users_.indexes[index].path.leaf(), json::value(value));
      EXPECT_EQ(reader.find_unique(this->users_, index, key, "").value(), "1") << value;
      EXPECT_EQ(reader.find_unique(this->users_, index, key, "1").value(), std::nullopt) << value;
      auto const filter =
          parse_filter(std::string("emails.value eq \"") + value + "\"", this->users_.definition);
      EXPECT_EQ(reader.count({.type = &this->users_, .filter = &*filter})->total, 1U) << value;
    }
  });
}

TYPED_TEST_P(directory_contract, finds_who_has_a_unique_value) {
  auto const where = this->fresh();
  auto const index = *this->users_.find_index(*this->users_.definition.resolve("userName"));
  auto const key = [&](std::string_view name) {
    return index_key(*this->users_.indexes[index].path.leaf(), json::value(name));
  };
  auto const rid = added(*where, "acme", this->users_, user_of({.id = "1", .user_name = "Ann"}));
  added(*where, "other", this->users_, user_of({.id = "2", .user_name = "Bob"}));
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.find_unique(this->users_, index, key("ANN"), "").value(), "1");
    EXPECT_EQ(reader.find_unique(this->users_, index, key("ann"), "1").value(), std::nullopt);
    EXPECT_EQ(reader.find_unique(this->users_, index, key("bob"), "").value(), std::nullopt);
    EXPECT_EQ(reader.find_unique(this->groups_, 0, key("ann"), "").value(), std::nullopt);
  });
  auto const renamed = user_of({.id = "1", .user_name = "Cleo"});
  EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
    EXPECT_TRUE(
        writer.update(this->users_, rid, to_string(renamed), index_entries(this->users_, renamed)));
    return true;
  }));
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ(reader.find_unique(this->users_, index, key("ann"), "").value(), std::nullopt);
    EXPECT_EQ(reader.find_unique(this->users_, index, key("cleo"), "").value(), "1");
    EXPECT_EQ(reader.find(this->users_, "1").value()->version, 2U);
  });
}

TYPED_TEST_P(directory_contract, keeps_members_on_both_sides) {
  auto const where = this->fresh();
  auto const ann = added(*where, "acme", this->users_, user_of({.id = "a", .user_name = "ann"}));
  auto const bob = added(*where, "acme", this->users_, user_of({.id = "b", .user_name = "bob"}));
  auto const all = added(*where, "acme", this->groups_, group_of("g", "All"));
  auto const some = added(*where, "acme", this->groups_, group_of("h", "Some"));
  auto const change = [&](auto work) {
    EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      work(writer);
      return true;
    }));
  };
  auto const members = [&](std::uint64_t group) {
    return reading(*where, "acme", [&](directory_reader& reader) {
      std::string text;
      EXPECT_TRUE(reader.members(group, [&](directory_member const& member) {
        text += member.id + ":" + member.type + ":" + member.display + " ";
        return true;
      }));
      return text;
    });
  };
  auto const groups = [&](std::uint64_t rid) {
    return reading(*where, "acme", [&](directory_reader& reader) {
      std::string text;
      auto const all_groups = reader.groups_of(rid);
      for (auto const& group : *all_groups) {
        text += group.id + ":" + group.type + ":" + group.display + " ";
      }
      return text;
    });
  };
  change([&](directory_writer& writer) {
    EXPECT_EQ(writer.add_member(all, bob, "Bobby").value(), true);
    EXPECT_EQ(writer.add_member(all, ann, "").value(), true);
    EXPECT_EQ(writer.add_member(all, bob, "Bob").value(), false) << "but its name is taken";
    EXPECT_EQ(writer.add_member(all, some, "a group").value(), true);
    EXPECT_EQ(writer.add_member(some, bob, "").value(), true);
    EXPECT_EQ(writer.remove_member(some, ann).value(), false);
  });
  EXPECT_EQ(members(all), "b:User:Bob a:User: h:Group:a group ");
  EXPECT_EQ(groups(bob), "g:Group:All h:Group:Some ");
  EXPECT_EQ(groups(some), "g:Group:All ");
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_TRUE(reader.find(this->users_, "b").value()->maybe_in_groups);
    EXPECT_EQ(reader.find(this->users_, "b").value()->version, 1U);
    int seen = 0;
    EXPECT_TRUE(reader.members(all, [&](directory_member const&) { return ++seen < 2; }));
    EXPECT_EQ(seen, 2);
  });
  change([&](directory_writer& writer) {
    EXPECT_EQ(writer.remove_member(all, bob).value(), true);
    EXPECT_EQ(writer.remove_member(all, bob).value(), false);
    EXPECT_EQ(writer.add_member(all, bob, "").value(), true);
  });
  EXPECT_EQ(members(all), "a:User: h:Group:a group b:User: ") << "it comes last now";
  change([&](directory_writer& writer) { EXPECT_TRUE(writer.remove(this->users_, bob)); });
  EXPECT_EQ(members(all), "a:User: h:Group:a group ");
  EXPECT_EQ(members(some), "");
  change([&](directory_writer& writer) { EXPECT_TRUE(writer.remove_members(all)); });
  EXPECT_EQ(members(all), "");
  EXPECT_EQ(groups(some), "");
  change([&](directory_writer& writer) {
    EXPECT_TRUE(writer.add_member(all, ann, ""));
    EXPECT_TRUE(writer.remove(this->groups_, all));
  });
  EXPECT_EQ(groups(ann), "");
}

TYPED_TEST_P(directory_contract, ends_a_scan_when_its_budget_is_spent_and_resumes_from_there) {
  auto const where = this->fresh();
  EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
    for (int i = 1000; i < 2000; ++i) {
      EXPECT_TRUE(insert(writer, this->users_,
                         user_of({.id = std::to_string(i),
                                  .user_name = std::to_string(i),
                                  .title = i % 400 == 399 ? "rare" : "often"})));
    }
    return true;
  }));
  auto const filter = *parse_filter("title eq \"rare\"", this->users_.definition);
  auto const by_name = this->users_.find_index(*this->users_.definition.resolve("userName"));
  for (auto const& sort : {std::optional<std::size_t>(), by_name}) {
    for (bool const descending : {false, true}) {
      std::vector<std::string> found;
      int scans = 0;
      scim::page_place place;
      for (bool more = true; more; ++scans) {
        auto const answer = reading(*where, "acme", [&](directory_reader& reader) {
          return *reader.scan({.type = &this->users_,
                               .filter = &filter,
                               .sort_index = sort,
                               .descending = descending,
                               .scan = {place, 9},
                               .spent = [] { return true; }});
        });
        for (auto const& row : answer.rows) {
          found.emplace_back(row.id);
        }
        more = answer.stopped.has_value();
        if (more) {
          place.from = scim::gap{*answer.stopped, true};
        }
        ASSERT_LT(scans, 1000);
      }
      auto expected = std::vector<std::string>{"1199", "1599", "1999"};
      if (descending) {
        std::reverse(expected.begin(), expected.end());
      }
      EXPECT_EQ(found, expected);
      EXPECT_GT(scans, 5);
    }
  }
  reading(*where, "acme", [&](directory_reader& reader) {
    directory_query query{.type = &this->users_, .filter = &filter};
    EXPECT_EQ(reader.count(query)->total, 3U);
    query.spent = [] { return true; };
    EXPECT_EQ(reader.count(query)->total, std::nullopt);
    query.filter = nullptr;
    EXPECT_EQ(reader.count(query)->total, 1000U);
  });
}

TYPED_TEST_P(directory_contract, leaves_out_the_few_that_a_filter_leaves_out) {
  // More match than are taken from indexes: resources are looked at instead.
  constexpr int users = 7000;
  auto const where = this->fresh();
  auto const name_of = [](int i) {
    return (i % 20 == 0 ? "x" : "a") + std::to_string(100'000 + i * 7919 % users);
  };
  for (int i = 0; i < users;) {
    ASSERT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      for (int const end = i + 1000; i < end; ++i) {
        bool const few = i % 20 == 0;
        person p{.id = std::to_string(i), .user_name = name_of(i)};
        p.emails = {p.id + "@a", few ? "few@b" : "most@b"};
        p.changed = few ? "2026-01-01T00:00:01Z" : "2026-01-01T00:00:09Z";
        EXPECT_TRUE(insert(writer, this->users_, user_of(p)));
      }
      return true;
    }));
  }
  std::vector<std::string> by_rid;
  std::vector<std::pair<std::string, std::string>> named;
  for (int i = 0; i < users; ++i) {
    if (i % 20 != 0) {
      by_rid.push_back(std::to_string(i));
      named.emplace_back(name_of(i), std::to_string(i));
    }
  }
  std::sort(named.begin(), named.end());
  std::vector<std::string> by_name;
  for (auto const& [name, id] : named) {
    by_name.push_back(id);
  }
  auto const sort = this->users_.find_index(*this->users_.definition.resolve("userName"));
  for (std::string const text :
       {R"(userName sw "a")", R"(not (userName sw "x"))", R"(emails.value eq "most@b")",
        R"(emails.value ne "few@b" and userName lt "b")", R"(emails[value eq "most@b"])",
        R"(meta.lastModified gt "2026-01-01T00:00:05Z")",
        R"(userName sw "a" and emails.value ew "@b")"}) {
    auto const filter = parse_filter(text, this->users_.definition);
    ASSERT_TRUE(filter.has_value()) << text;
    reading(*where, "acme", [&](directory_reader& reader) {
      for (auto const& sorted : {std::optional<std::size_t>(), sort}) {
        for (bool const descending : {false, true}) {
          // Each with both orders and both directions.
          std::uint64_t const skip = sorted.has_value() == descending ? 0 : 1234;
          directory_query query{.type = &this->users_,
                                .filter = &*filter,
                                .sort_index = sorted,
                                .descending = descending};
          query.scan.rows_max = users;
          query.skip = skip;
          auto expected = sorted ? by_name : by_rid;
          if (descending) {
            std::reverse(expected.begin(), expected.end());
          }
          expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(skip));
          auto const found = reader.scan(query);
          ASSERT_TRUE(found.has_value()) << text;
          EXPECT_EQ(ids_of(found->rows), expected)
              << text << (sorted ? " sorted" : "") << (descending ? " descending" : "");
          EXPECT_EQ(reader.count(query)->total, by_rid.size()) << text;
        }
      }
    });
  }
}

TYPED_TEST_P(directory_contract, counts_and_sorts_members_of_its_own_type_only) {
  auto const where = this->fresh();
  // The groups come first, so they have the lower rids.
  auto const outer = added(*where, "acme", this->groups_, group_of("outer", "Outer"));
  auto const inner = added(*where, "acme", this->groups_, group_of("inner", "Inner"));
  auto const ann = added(*where, "acme", this->users_, user_of({.id = "a", .user_name = "ann"}));
  EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
    return writer.add_member(outer, inner, "").has_value() &&
           writer.add_member(outer, ann, "").has_value();
  }));
  auto const sort = this->users_.find_index(*this->users_.definition.resolve("userName"));
  auto const filter = parse_filter(R"(groups.value eq "outer")", this->users_.definition);
  ASSERT_TRUE(filter.has_value());
  reading(*where, "acme", [&](directory_reader& reader) {
    for (auto const& sorted : {std::optional<std::size_t>(), sort}) {
      directory_query query{.type = &this->users_, .filter = &*filter, .sort_index = sorted};
      query.scan.rows_max = 9;
      EXPECT_EQ(ids_of(reader.scan(query)->rows), std::vector<std::string>{"a"});
      EXPECT_EQ(reader.count(query)->total, 1U);
    }
  });
}

TYPED_TEST_P(directory_contract, answers_as_a_plain_directory_does) {
  auto const where = this->fresh();
  plain_directory plain;
  std::mt19937 random(7);
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  auto const word = [&](std::string const& mark = "") {
    static constexpr std::array<std::string_view, 8> parts = {"a", "b",   "Ab", "é",
                                                              "É", "ann", "z",  "\xf0\x9f\x98\x80"};
    std::string text;
    for (auto left = 1 + below(3); left > 0; --left) {
      text += parts[below(parts.size())];
    }
    text += mark;
    return below(40) == 0 ? text + std::string(300, 'x') + std::to_string(below(3)) : text;
  };
  // Unique: that is left to the one who writes.
  std::vector<std::string> names;
  auto const some_name = [&] {
    return names.emplace_back(word("-" + std::to_string(names.size())));
  };
  auto const some_user = [&](std::string id) {
    person p{.id = std::move(id), .user_name = some_name()};
    p.display_name = below(3) == 0 ? "" : word();
    p.title = below(2) == 0 ? "" : word();
    for (auto left = below(4); left > 0; --left) {
      p.emails.push_back(word() + "@" + word());
    }
    p.changed = "2026-01-01T00:00:0" + std::to_string(below(10)) + "Z";
    return user_of(p);
  };
  auto const any_of = [&](model_type const& type) -> std::optional<std::uint64_t> {
    std::vector<std::uint64_t> rids;
    for (auto const& [rid, r] : plain.resources) {
      if (r.type == &type) {
        rids.push_back(rid);
      }
    }
    return rids.empty() ? std::nullopt : std::optional(rids[below(rids.size())]);
  };
  auto const some_type = [&]() -> model_type const& {
    return below(3) == 0 ? this->groups_ : this->users_;
  };
  int named = 0;

  auto const change = [&](directory_writer& writer) {
    auto const& type = some_type();
    auto const rid = any_of(type);
    auto const group = any_of(this->groups_);
    switch (rid ? below(10) : 0) {
      case 0:
      case 1:
      case 2: {
        auto id = "id" + std::to_string(++named);
        auto value = &type == &this->users_ ? some_user(id) : group_of(id, word());
        auto const given = insert(writer, type, value);
        ASSERT_TRUE(given.has_value()) << given.error().text;
        plain.resources[*given] = {&type, 1, std::move(value)};
        break;
      }
      case 3:
      case 4:
      case 5: {
        auto& r = plain.resources[*rid];
        auto id = *r.value.find("id")->if_string();
        r.value = &type == &this->users_ ? some_user(id) : group_of(id, word());
        ++r.version;
        ASSERT_TRUE(writer.update(type, *rid, to_string(r.value), index_entries(type, r.value)));
        break;
      }
      case 6:
        ASSERT_TRUE(writer.remove(type, *rid));
        plain.remove(*rid);
        break;
      case 7:
        if (group && *group != *rid) {
          auto& members = plain.resources[*group].members;
          auto const at = std::find_if(members.begin(), members.end(),
                                       [&](auto const& member) { return member.first == *rid; });
          auto const name = word();
          ASSERT_EQ(writer.remove_member(*group, *rid).value(), at != members.end());
          if (at != members.end()) {
            members.erase(at);
          }
        }
        break;
      default:
        if (group && *group != *rid) {
          auto& members = plain.resources[*group].members;
          auto const at = std::find_if(members.begin(), members.end(),
                                       [&](auto const& member) { return member.first == *rid; });
          auto const name = word();
          ASSERT_EQ(writer.add_member(*group, *rid, name).value(), at == members.end());
          if (at == members.end()) {
            members.emplace_back(*rid, name);
          } else {
            at->second = name;
          }
        }
        break;
    }
  };

  auto const some_filter = [&](model_type const& type) {
    auto const quoted = [](std::string const& text) { return to_string(json::value(text)); };
    std::function<std::string(int)> const expression = [&](int depth) -> std::string {
      static constexpr std::array<std::string_view, 8> compare = {"eq", "ne", "sw", "co",
                                                                  "ew", "gt", "le", "lt"};
      auto const op = std::string(compare[below(compare.size())]);
      auto const member = any_of(below(2) == 0 ? this->users_ : this->groups_);
      auto const someone = quoted(member ? plain.id_of(*member) : "missing");
      bool const user = &type == &this->users_;
      switch (below(depth > 0 ? 14 : 10)) {
        case 0:
          return user ? "userName " + op + " " +
                            quoted(names.empty() || below(2) == 0 ? word()
                                                                  : names[below(names.size())])
                      : "displayName " + op + " " + quoted(word());
        case 1: return "displayName " + op + " " + quoted(word());
        case 2: return "displayName pr";
        case 3: return "id eq " + someone;
        case 4: return "meta.lastModified gt \"2026-01-01T00:00:05Z\"";
        case 5: return (user ? "emails.value " : "displayName ") + op + " " + quoted(word());
        case 6:
          return user ? "emails[primary eq true and value " + op + " " + quoted(word()) + "]"
                      : "members.display " + op + " " + quoted(word());
        case 7: return user ? "title " + op + " " + quoted(word()) : "members[type eq \"User\"]";
        case 8: return (user ? "groups.value eq " : "members.value eq ") + someone;
        case 9: return user ? "groups.display sw " + quoted(word()) : "members pr";
        case 10: return "not (" + expression(depth - 1) + ")";
        case 11: return "(" + expression(depth - 1) + " or " + expression(depth - 1) + ")";
        default: return "(" + expression(depth - 1) + " and " + expression(depth - 1) + ")";
      }
    };
    return expression(3);
  };

  auto const compare = [&](directory_reader& reader) {
    auto const& type = some_type();
    directory_query query{.type = &type};
    std::string const text = below(3) > 0 ? some_filter(type) : "";
    auto const filter = text.empty() ? std::nullopt : [&] {
      auto parsed = parse_filter(text, type.definition);
      EXPECT_TRUE(parsed.has_value()) << text << ": " << (parsed ? "" : to_string(parsed.error()));
      return parsed ? std::optional(*std::move(parsed)) : std::nullopt;
    }();
    query.filter = filter ? &*filter : nullptr;
    if (below(2) == 0) {
      query.sort_index = below(type.indexes.size());
    }
    query.descending = below(2) == 0;
    if (auto const rid = below(4) == 0 ? any_of(type) : std::nullopt) {
      query.rid_max = *rid;
    }
    auto everything = query;
    everything.filter = nullptr;
    everything.rid_max = UINT64_MAX;
    auto const places = plain.matching(everything);
    if (!places.empty() && below(4) > 0) {
      query.scan.place.from = scim::gap{places[below(places.size())], below(2) == 0};
    }
    query.scan.place.towards = below(2) == 0 ? scim::direction::forward : scim::direction::backward;
    query.scan.rows_max = static_cast<std::uint32_t>(1 + below(20));
    query.skip = below(3) == 0 ? below(30) : 0;

    auto const found = reader.scan(query);
    ASSERT_TRUE(found.has_value()) << text << ": " << found.error().text;
    EXPECT_FALSE(found->stopped.has_value());
    auto const expected = plain.scan(query);
    std::vector<scim::position> at;
    for (auto const& row : found->rows) {
      at.push_back(row.at);
      auto const known = plain.resources.find(row.at.rid);
      ASSERT_NE(known, plain.resources.end());
      EXPECT_EQ(row.text, to_string(known->second.value));
      EXPECT_EQ(row.id, plain.id_of(row.at.rid));
      EXPECT_TRUE(row.maybe_in_groups || plain.groups_of(row.at.rid).empty());
    }
    ASSERT_EQ(at, expected) << text << (query.sort_index ? " sorted" : "")
                            << (query.descending ? " descending" : "");
    auto const total = reader.count(query);
    ASSERT_TRUE(total.has_value());
    EXPECT_EQ(total->total, plain.matching(query).size()) << text;
  };

  for (int round = 0; round < 150; ++round) {
    bool const keep = below(8) > 0;
    auto const before = plain;
    ASSERT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      for (auto left = 1 + below(6); left > 0 && !testing::Test::HasFatalFailure(); --left) {
        change(writer);
      }
      compare(writer);
      return keep;
    }));
    if (!keep) {
      plain = before;
    }
    reading(*where, "acme", [&](directory_reader& reader) {
      for (int i = 0; i < 10 && !testing::Test::HasFatalFailure(); ++i) {
        compare(reader);
      }
    });
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
  for (auto const& [rid, r] : plain.resources) {
    reading(*where, "acme", [&](directory_reader& reader) {
      auto const found = reader.find(*r.type, plain.id_of(rid));
      ASSERT_TRUE(found.has_value() && found->has_value());
      EXPECT_EQ((*found)->rid, rid);
      EXPECT_EQ((*found)->version, r.version);
      std::vector<std::pair<std::uint64_t, std::string>> members;
      EXPECT_TRUE(reader.members(rid, [&](directory_member const& member) {
        EXPECT_EQ(member.id, plain.id_of(member.rid));
        members.emplace_back(member.rid, member.display);
        return true;
      }));
      EXPECT_EQ(members, r.members);
      std::vector<std::uint64_t> groups;
      auto const all_groups = reader.groups_of(rid);
      for (auto const& group : *all_groups) {
        groups.push_back(group.rid);
      }
      EXPECT_EQ(groups, plain.groups_of(rid));
    });
  }
}

TYPED_TEST_P(directory_contract, leaves_out_any_number_of_rows_for_the_index_method) {
  auto const where = this->fresh();
  plain_directory plain;
  EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
    plain.resources.clear();
    for (int i = 0; i < 5000; ++i) {
      auto user = user_of({.id = std::to_string(i), .user_name = std::to_string(i * 7919 % 5000)});
      auto const rid = *insert(writer, this->users_, user);
      if (i % 3 == 0 || (i > 1500 && i < 3800)) {
        EXPECT_TRUE(writer.remove(this->users_, rid));
      } else {
        plain.resources[rid] = {&this->users_, 1, std::move(user)};
      }
    }
    return true;
  }));
  std::mt19937_64 random(3);
  auto const by_name = this->users_.find_index(*this->users_.definition.resolve("userName"));
  for (int i = 0; i < 60; ++i) {
    directory_query query{.type = &this->users_};
    query.skip = random() % 2200;
    query.sort_index = random() % 3 == 0 ? by_name : std::nullopt;
    query.descending = random() % 2 == 0;
    query.scan.rows_max = 3;
    auto const places = plain.matching(query);
    if (random() % 3 == 0) {
      query.rid_max = places[random() % places.size()].rid;
    }
    if (random() % 3 == 0) {
      query.scan.place.from = scim::gap{places[random() % places.size()], random() % 2 == 0};
    }
    auto const expected = plain.scan(query);
    reading(*where, "acme", [&](directory_reader& reader) {
      std::vector<scim::position> at;
      auto const found = reader.scan(query);
      for (auto const& row : found->rows) {
        at.push_back(row.at);
      }
      EXPECT_EQ(at, expected) << query.skip;
      EXPECT_EQ(reader.count(query)->total, plain.matching(query).size());

      std::vector<scim::position> shown;
      auto one_by_one = query;
      one_by_one.each = [&](directory_row_view const& row) {
        shown.push_back({std::string(row.sort_key), row.rid});
        EXPECT_EQ(row.id, found->rows[shown.size() - 1].id);
        EXPECT_EQ(row.text, found->rows[shown.size() - 1].text);
        return shown.size() < 2;
      };
      EXPECT_TRUE(reader.scan(one_by_one)->rows.empty());
      at.resize(std::min<std::size_t>(at.size(), 2));
      EXPECT_EQ(shown, at);
    });
  }
}

TYPED_TEST_P(directory_contract, loses_nothing_of_what_many_threads_write) {
  auto const where = this->fresh();
  added(*where, "acme", this->users_, user_of({.id = "counter", .user_name = "0"}));
  constexpr int threads = 4;
  constexpr int each = 200;
  std::atomic<bool> writing_goes_on = true;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        auto const id = std::to_string(t) + "-" + std::to_string(i);
        EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
          EXPECT_TRUE(insert(writer, this->users_, user_of({.id = id, .user_name = id})));
          auto const old = *writer.find(this->users_, "counter");
          auto const value = std::stoi(*json::parse(old->text)->find("userName")->if_string());
          auto const next = user_of({.id = "counter", .user_name = std::to_string(value + 1)});
          EXPECT_TRUE(writer.update(this->users_, old->rid, to_string(next),
                                    index_entries(this->users_, next)));
          return true;
        }));
        EXPECT_NE(text_in(*where, "acme", this->users_, id), "none") << "who was answered sees it";
      }
    });
  }
  std::thread watcher([&] {
    while (writing_goes_on) {
      reading(*where, "acme", [&](directory_reader& reader) {
        // All that is in one state: as many as the counter says.
        auto const value = std::stoi(*json::parse((*reader.find(this->users_, "counter"))->text)
                                          ->find("userName")
                                          ->if_string());
        EXPECT_EQ(reader.count({.type = &this->users_})->total, static_cast<unsigned>(value) + 1);
      });
    }
  });
  for (auto& thread : all) {
    thread.join();
  }
  writing_goes_on = false;
  watcher.join();
  reading(*where, "acme", [&](directory_reader& reader) {
    EXPECT_EQ((*reader.find(this->users_, "counter"))->version, threads * each + 1U);
    EXPECT_EQ(reader.count({.type = &this->users_})->total, threads * each + 1U);
  });
}

/// How many resources are walked through; a million take a minute.
[[nodiscard]] inline auto walk_rows() -> int {
  auto const* const rows = std::getenv("TIDEGATE_WALK_ROWS");
  return rows != nullptr ? std::atoi(rows) : 100'000;
}

TYPED_TEST_P(directory_contract, returns_every_resource_once_while_others_write) {
  auto const where = this->fresh();
  auto const& users = this->users_;
  int const rows = walk_rows();
  auto const id_of = [](int number) { return std::to_string(number); };
  // Every tenth is changed and removed during the walks, the others stay unchanged.
  auto const stays = [](int number) { return number % 10 != 0; };
  auto const name_of = [](std::uint64_t number) {
    return "u" + std::to_string(number * 2'654'435'761U % 1'000'003U);
  };
  for (int i = 0; i < rows;) {
    ASSERT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
      for (int end = std::min(rows, i + 5000); i < end; ++i) {
        EXPECT_TRUE(
            insert(writer, users,
                   user_of({.id = id_of(i), .user_name = name_of(static_cast<std::uint64_t>(i))})));
      }
      return true;
    }));
  }

  std::atomic<bool> over = false;
  std::thread others([&] {
    std::mt19937_64 random(5);
    for (std::uint64_t step = 0; !over; ++step) {
      auto const id = id_of(static_cast<int>(random() % static_cast<unsigned>(rows)) / 10 * 10);
      auto const name = name_of(random()) + "-" + std::to_string(step);
      EXPECT_TRUE(writing(*where, "acme", [&](directory_writer& writer) {
        if (step % 3 == 0) {
          auto const added = user_of({.id = "new" + std::to_string(step), .user_name = name});
          return insert(writer, users, added).has_value();
        }
        auto const old = writer.find(users, id);
        if (!old || !*old) {
          return false;
        }
        auto const changed = user_of({.id = id, .user_name = name});
        return (step % 3 == 1 ? writer.update(users, (*old)->rid, to_string(changed),
                                              index_entries(users, changed))
                              : writer.remove(users, (*old)->rid))
            .has_value();
      }));
    }
  });

  auto const by_name = users.find_index(*users.definition.resolve("userName"));
  for (auto const& sort : {std::optional<std::size_t>(), by_name}) {
    for (bool const descending : {false, true}) {
      for (auto const towards : {scim::direction::forward, scim::direction::backward}) {
        directory_query query{.type = &users, .sort_index = sort, .descending = descending};
        query.rid_max = reading(*where, "acme",
                                [&](directory_reader& reader) { return *reader.newest(users); });
        std::vector<int> seen(static_cast<std::size_t>(rows));
        std::optional<scim::page_place> place = scim::page_place{towards, std::nullopt};
        std::size_t pages = 0;
        while (place) {
          auto const page = reading(*where, "acme", [&](directory_reader& reader) {
            return scim::read_page<directory_row>(
                *place, 500,
                [&](scim::scan const& scan) {
                  auto of_page = query;
                  of_page.scan = scan;
                  return *reader.scan(of_page);
                },
                [](directory_row const& row) { return row.at; });
          });
          place = towards == scim::direction::forward ? page.next : page.previous;
          // Going back, the page that reaches the start is the first page again.
          bool const repeats = towards == scim::direction::backward && !place;
          for (auto const& row : page.rows) {
            if (!row.id.starts_with("new")) {
              auto& times = seen[static_cast<std::size_t>(std::stoi(std::string(row.id)))];
              times = repeats ? 1 : times + 1;
            }
          }
          EXPECT_TRUE(std::is_sorted(page.rows.begin(), page.rows.end(),
                                     [&](directory_row const& a, directory_row const& b) {
                                       return descending ? b.at < a.at : a.at < b.at;
                                     }));
          ++pages;
          ASSERT_LT(pages, static_cast<std::size_t>(rows) / 100 + 100) << "it has to end";
        }
        for (int i = 0; i < rows; ++i) {
          if (stays(i)) {
            ASSERT_EQ(seen[static_cast<std::size_t>(i)], 1) << i;
          }
        }
      }
    }
  }
  over = true;
  others.join();
}

REGISTER_TYPED_TEST_SUITE_P(directory_contract, leaves_out_the_few_that_a_filter_leaves_out,
                            counts_and_sorts_members_of_its_own_type_only,
                            finds_what_was_inserted_and_nothing_else, undoes_what_is_not_to_be_kept,
                            gives_no_rid_twice, finds_who_has_one_of_several_values,
                            finds_who_has_a_unique_value, keeps_members_on_both_sides,
                            ends_a_scan_when_its_budget_is_spent_and_resumes_from_there,
                            answers_as_a_plain_directory_does,
                            leaves_out_any_number_of_rows_for_the_index_method,
                            loses_nothing_of_what_many_threads_write,
                            returns_every_resource_once_while_others_write);

}  // namespace tidegate::TIDEGATE_ABI::store::directory_contract_support
