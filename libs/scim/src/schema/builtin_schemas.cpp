// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/schema.hpp>

#include <array>
#include <utility>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

using enum attribute_type;

/// What is not the default of RFC 7643, section 2.2 is said with `with`.
auto simple(std::string_view name, std::string_view description, attribute_type type = string)
    -> attribute {
  attribute a;
  a.name = name;
  a.description = description;
  a.type = type;
  a.case_exact = type == binary || type == reference;
  return a;
}

template <class Change>
auto with(attribute a, Change change) -> attribute {
  change(a);
  return a;
}

auto read_only(attribute a) -> attribute {
  a.mutability = attribute_mutability::read_only;
  for (auto& sub : a.sub_attributes) {
    sub.mutability = attribute_mutability::read_only;
  }
  return a;
}

auto immutable(attribute a) -> attribute {
  a.mutability = attribute_mutability::immutable;
  return a;
}

auto exact(attribute a) -> attribute {
  a.case_exact = true;
  return a;
}

auto required(attribute a) -> attribute {
  a.required = true;
  return a;
}

auto reference_to(attribute a, std::vector<std::string> types) -> attribute {
  a.type = reference;
  a.case_exact = true;
  a.reference_types = std::move(types);
  return a;
}

auto canonical(attribute a, std::vector<std::string> values) -> attribute {
  a.canonical_values = std::move(values);
  return a;
}

auto complex_of(std::string_view name, std::string_view description, std::vector<attribute> subs)
    -> attribute {
  auto a = simple(name, description, complex);
  a.sub_attributes = std::move(subs);
  return a;
}

auto many(attribute a) -> attribute {
  a.multi_valued = true;
  return a;
}

/// A multi-valued attribute with the sub-attributes of section 2.4.
auto plural(std::string_view name, std::string_view description, attribute value,
            std::vector<std::string> types) -> attribute {
  return many(complex_of(
      name, description,
      {std::move(value), simple("display", "What to show to people."),
       canonical(simple("type", "What the value is for."), std::move(types)),
       simple("primary", "Whether this is the preferred value; true at most once.", boolean)}));
}

auto make_user() -> schema {
  return {
      std::string(user_schema),
      "User",
      "User Account",
      {
          with(required(simple("userName", "Identifies the user for signing in.")),
               [](attribute& a) { a.uniqueness = attribute_uniqueness::server; }),
          complex_of("name", "The parts of the user's name.",
                     {
                         simple("formatted", "The full name, as it is shown."),
                         simple("familyName", "The family name."),
                         simple("givenName", "The given name."),
                         simple("middleName", "The middle names."),
                         simple("honorificPrefix", "Titles before the name."),
                         simple("honorificSuffix", "Titles behind the name."),
                     }),
          simple("displayName", "The name that is shown to others."),
          simple("nickName", "What the user is called casually."),
          reference_to(simple("profileUrl", "A page about the user."), {"external"}),
          simple("title", "The job title."),
          simple("userType", "The relation between the organization and the user."),
          simple("preferredLanguage", "The preferred languages, as in Accept-Language."),
          simple("locale", "Where the user is, for formats of dates and currency."),
          simple("timezone", "The time zone, by its name in the IANA database."),
          simple("active", "Whether the account may be used.", boolean),
          with(simple("password", "The password in clear text, for setting it."),
               [](attribute& a) {
                 a.case_exact = true;
                 a.mutability = attribute_mutability::write_only;
                 a.returned = attribute_returned::never;
               }),
          plural("emails", "Addresses for e-mail.", simple("value", "The address."),
                 {"work", "home", "other"}),
          plural("phoneNumbers", "Telephone numbers.", simple("value", "The number."),
                 {"work", "home", "mobile", "fax", "pager", "other"}),
          plural("ims", "Addresses for instant messages.", simple("value", "The address."),
                 {"aim", "gtalk", "icq", "xmpp", "msn", "skype", "qq", "yahoo"}),
          plural("photos", "Pictures of the user.",
                 reference_to(simple("value", "Where the picture is."), {"external"}),
                 {"photo", "thumbnail"}),
          many(complex_of(
              "addresses", "Postal addresses.",
              {
                  simple("formatted", "The full address, as it is shown."),
                  simple("streetAddress", "Street, number, and more lines."),
                  simple("locality", "The city."),
                  simple("region", "The state or region."),
                  simple("postalCode", "The postal code."),
                  simple("country", "The country, by ISO 3166-1 alpha-2."),
                  canonical(simple("type", "What the address is for."), {"work", "home", "other"}),
                  simple("primary", "Whether this is the preferred address.", boolean),
              })),
          read_only(many(complex_of(
              "groups", "Groups that the user is in.",
              {
                  simple("value", "The id of the group."),
                  reference_to(simple("$ref", "The URI of the group."), {"User", "Group"}),
                  simple("display", "The name of the group."),
                  canonical(simple("type", "Whether through another group."),
                            {"direct", "indirect"}),
              }))),
          plural("entitlements", "What the user is entitled to.",
                 simple("value", "The entitlement."), {}),
          plural("roles", "What the user does.", simple("value", "The role."), {}),
          plural("x509Certificates", "Certificates of the user.",
                 simple("value", "The certificate, DER in base64.", binary), {}),
      }};
}

auto make_group() -> schema {
  return {
      std::string(group_schema),
      "Group",
      "Group",
      {
          required(simple("displayName", "The name of the group.")),
          many(complex_of(
              "members", "Users and groups that are in the group.",
              {
                  immutable(simple("value", "The id of the member.")),
                  immutable(
                      reference_to(simple("$ref", "The URI of the member."), {"User", "Group"})),
                  immutable(canonical(simple("type", "What the member is."), {"User", "Group"})),
                  immutable(simple("display", "The name of the member.")),
              })),
      }};
}

auto make_enterprise_user() -> schema {
  return {std::string(enterprise_user_schema),
          "EnterpriseUser",
          "Enterprise User",
          {
              simple("employeeNumber", "The number that the organization gave the user."),
              simple("costCenter", "The cost center."),
              simple("organization", "The organization."),
              simple("division", "The division."),
              simple("department", "The department."),
              complex_of("manager", "The user's manager.",
                         {
                             simple("value", "The id of the manager."),
                             reference_to(simple("$ref", "The URI of the manager."), {"User"}),
                             read_only(simple("displayName", "The name of the manager.")),
                         }),
          }};
}

}  // namespace

auto common_attributes() -> std::span<attribute const> {
  static auto const attributes = std::to_array<attribute>({
      with(required(many(simple("schemas", "The schemas of the resource.", reference))),
           [](attribute& a) {
             a.case_exact = false;  // as everywhere where URNs of schemas are compared
             a.reference_types = {"uri"};
             a.returned = attribute_returned::always;
           }),
      with(read_only(exact(simple("id", "Identifies the resource."))),
           [](attribute& a) {
             a.returned = attribute_returned::always;
             a.uniqueness = attribute_uniqueness::server;
           }),
      exact(simple("externalId", "What the client calls the resource.")),
      read_only(complex_of("meta", "Data about the resource.",
                           {
                               exact(simple("resourceType", "The type of the resource.")),
                               simple("created", "When it was made.", date_time),
                               simple("lastModified", "When it was changed last.", date_time),
                               reference_to(simple("location", "Its URI."), {"uri"}),
                               exact(simple("version", "Its version, as in ETag.")),
                           })),
  });
  return attributes;
}

auto builtin_schemas() -> std::span<schema const> {
  static auto const schemas = std::to_array<schema>({
      make_user(),
      make_group(),
      make_enterprise_user(),
  });
  return schemas;
}

auto builtin_resource_types() -> std::span<resource_type const> {
  static auto const types = std::to_array<resource_type>({
      {"User",
       "User",
       "User Account",
       "/Users",
       std::string(user_schema),
       {{std::string(enterprise_user_schema), false}}},
      {"Group", "Group", "Group", "/Groups", std::string(group_schema), {}},
  });
  return types;
}

auto user_definition() -> resource_definition const& {
  static auto const made =
      resource_definition::make(builtin_resource_types()[0], builtin_schemas()).value();
  return made;
}

auto group_definition() -> resource_definition const& {
  static auto const made =
      resource_definition::make(builtin_resource_types()[1], builtin_schemas()).value();
  return made;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
