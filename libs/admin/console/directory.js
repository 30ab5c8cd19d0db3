"use strict";
// SPDX-License-Identifier: Apache-2.0
// The view of the directory: what the service says of users, groups and other resources, and changes of them where they are allowed.
(globalThis.consoleViews ??= []).push(({ $, make, button, lesson, confirmThat, moment, ask, caller }) => {
  const pageSize = 25;
  const form = $("directory-form");
  const { route, tenant, type, filter } = form.elements;
  let access = "read";
  let routes = [];
  let begun = false;
  const asked = { list: 0, resource: 0 }; // answers to what was asked before are too late
  let place = { search: { filter: "", by: "", descending: false }, cursor: "", from: 0, rows: 0, list: null }; // of the page that is shown
  let opened = null; // the id of what is shown beside the list

  // ---- what is chosen ----

  const mayChange = () => access === "write" && !caller["read-only"];
  const byName = (list, key, name) => list.find((each) => each[key] === name);
  const chosenRoute = () => byName(routes, "route", route.value);
  const chosenType = () => byName(chosenRoute().types, "endpoint", type.value);
  const pathOf = (id) => `/api/v1/directory/${encodeURIComponent(route.value)}/${encodeURIComponent(tenant.value)}${type.value}` +
    (id === undefined ? "" : `/${encodeURIComponent(id)}`);

  function choices(select, values, names) {
    const before = select.value;
    select.replaceChildren(...values.map((value, i) => make("option", { value }, (names || values)[i])));
    select.value = values.includes(before) ? before : values[0];
    select.closest("label").hidden = values.length < 2;
  }
  const plural = (endpoint) => endpoint.slice(1);
  function chooseRoute() {
    const { tenants, types } = chosenRoute();
    choices(tenant, tenants);
    choices(type, types.map((each) => each.endpoint), types.map((each) => plural(each.endpoint)));
  }

  // ---- columns ----

  const text = (value) => (value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));
  const nameOf = (user) => text(user.displayName || (user.name && (user.name.formatted || [user.name.givenName, user.name.familyName].filter(Boolean).join(" "))));
  function mailOf(user) {
    const all = Array.isArray(user.emails) ? user.emails : [];
    return text((all.find((each) => each.primary) || all[0] || {}).value);
  }
  const changed = ["Last change", "meta.lastModified", (each) => (each.meta && each.meta.lastModified ? moment(each.meta.lastModified) : "")];

  /** Heading, what to sort by, and what a cell says; the first names the resource. */
  function columnsOf({ name, attributes }) {
    if (name === "User") {
      return [["User name", "userName", (each) => text(each.userName)], ["Name", "displayName", nameOf], ["E-mail", "emails.value", mailOf],
        ["Active", "active", (each) => (each.active === false ? "no" : each.active === true ? "yes" : "")], changed];
    }
    const shown = name === "Group" ? ["displayName", "externalId"] : attributes.slice(0, 4);
    const first = shown.length > 0 ? [] : [["Id", "id", (each) => text(each.id)]];
    const titles = { displayName: "Name", externalId: "External id" };
    return [...first, ...shown.map((path) => [Object.hasOwn(titles, path) ? titles[path] : path, path, (each) => text(each[path])]), changed];
  }

  // ---- what is said ----

  const words = {
    invalidFilter: "The filter cannot be read",
    invalidCursor: "This page cannot be opened again; search again",
    expiredCursor: "This page is too old; search again",
    tooMany: "That is too much at once",
    invalidValue: "That cannot be done",
  };
  function fault(error) {
    const kind = error.answer && error.answer.scimType;
    const said = Object.hasOwn(words, kind) ? `${words[kind]}: ${error.message}` : error.message;
    $("directory-fault").replaceChildren(...(said ? [make("p", { class: "error" }, said)] : []));
  }
  const quiet = () => $("directory-fault").replaceChildren();

  // ---- the list ----

  function heading([title, by]) {
    const { search } = place;
    const isSorted = search.by === by;
    const sort = button(title, { class: "sort", "data-by": by }, async () => {
      await turn("", 0, { ...search, by, descending: isSorted && !search.descending });
      [...$("directory-list").querySelectorAll("button.sort")].find((each) => each.dataset.by === by)?.focus();
    });
    sort.append(make("span", { "aria-hidden": "true" }, isSorted ? (search.descending ? " ▼" : " ▲") : ""));
    return make("th", { scope: "col", "aria-sort": isSorted ? (search.descending ? "descending" : "ascending") : "none" }, sort);
  }

  function row(columns, resource) {
    const [[, , first], ...others] = columns;
    const link = button(first(resource) || text(resource.id), { class: "link", "data-id": resource.id }, () => open(resource.id));
    return make("tr", {}, make("td", {}, link), ...others.map(([title, , cell]) => make("td", { "data-label": title }, cell(resource))));
  }

  function show(list) {
    const columns = columnsOf(chosenType());
    const rows = list.Resources || [];
    const body = rows.map((resource) => row(columns, resource));
    if (rows.length === 0) {
      body.push(make("tr", {}, make("td", { colspan: String(columns.length), class: "is-empty" },
        place.cursor ? "Nothing is left on this page." : place.search.filter ? "Nothing fits the filter." : `There are no ${plural(type.value)} yet.`)));
    }
    $("directory-list").replaceChildren(make("thead", {}, make("tr", {}, ...columns.map(heading))), make("tbody", {}, ...body));
    const total = list.totalResults === undefined ? "" : ` of ${list.totalResults.toLocaleString("en")}`;
    $("directory-total").textContent = rows.length === 0 ? "" : `${(place.from + 1).toLocaleString("en")}–${(place.from + rows.length).toLocaleString("en")}${total}`;
    mark();
    $("directory-previous").disabled = !list.previousCursor;
    $("directory-next").disabled = !list.nextCursor;
  }

  /** Shows another page. `from` is how many are before it; going back it is known when it is there. A cursor is one of a search. */
  async function turn(cursor, from, search = place.search) {
    const number = ++asked.list;
    const given = new URLSearchParams({ count: String(pageSize), cursor });
    if (search.filter) {
      given.set("filter", search.filter);
    }
    if (search.by) {
      given.set("sortBy", search.by);
      given.set("sortOrder", search.descending ? "descending" : "ascending");
    }
    if (chosenType().name === "Group") {
      given.set("excludedAttributes", "members");
    }
    try {
      const list = await ask(`${pathOf()}?${given}`);
      if (number === asked.list) {
        const rows = (list.Resources || []).length;
        place = { search, cursor, from: from === null ? (list.previousCursor ? Math.max(0, place.from - rows) : 0) : from, rows, list };
        quiet();
        show(list);
      }
    } catch (error) {
      if (number === asked.list) {
        fault(error);
      }
    }
  }

  // ---- one resource ----

  /** The button of what is shown beside the list, if it is on this page. */
  const openedButton = () => [...$("directory-list").querySelectorAll("button.link")].find((each) => each.dataset.id === opened);
  function mark() {
    $("directory-list").querySelector("[aria-current]")?.removeAttribute("aria-current");
    openedButton()?.setAttribute("aria-current", "true");
  }
  function forget() {
    ++asked.resource;
    $("directory-detail").replaceChildren();
    opened = null;
    mark();
  }
  function close() {
    const link = openedButton();
    forget();
    link?.focus();
  }

  async function change(options, question, id) {
    if (!await confirmThat(question)) {
      return;
    }
    try {
      await ask(pathOf(id), options);
      await turn(place.cursor, place.from);
      if (options.method === "DELETE") {
        forget();
        form.querySelector("button").focus();
      } else {
        await open(id);
      }
    } catch (error) {
      fault(error);
    }
  }

  function actions(resource, title) {
    if (!mayChange()) {
      return [];
    }
    const act = (label, kind, options, question) => button(label, { class: kind }, () => change(options, question, resource.id));
    const active = (value) => ({
      method: "PATCH",
      headers: { "Content-Type": "application/scim+json" },
      body: JSON.stringify({ schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], Operations: [{ op: "replace", path: "active", value }] }),
    });
    const made = [];
    if (chosenType().name === "User") {
      made.push(resource.active === false ? act("Activate", "plain", active(true), { title: `Activate ${title}?`, text: "It is changed for every reader of the directory.", label: "Activate" })
        : act("Deactivate", "plain", active(false), { title: `Deactivate ${title}?`, text: "It is changed for every reader of the directory.", label: "Deactivate" }));
    }
    made.push(act("Delete", "danger", { method: "DELETE" }, { title: `Delete ${title}?`, text: "This cannot be undone.", label: "Delete", isDangerous: true }));
    return made;
  }

  async function open(id) {
    const number = ++asked.resource;
    const into = $("directory-detail");
    try {
      let note = "";
      let resource;
      try {
        resource = await ask(pathOf(id));
      } catch (error) {
        if (!error.answer || error.answer.scimType !== "tooMany") {
          throw error;
        }
        note = "It has more members than can be shown here.";
        resource = await ask(`${pathOf(id)}?excludedAttributes=members`);
      }
      if (number !== asked.resource) {
        return;
      }
      opened = id;
      mark();
      const title = columnsOf(chosenType())[0][2](resource) || text(resource.id);
      const closing = button("Close", { class: "plain" }, close);
      const head = make("h3", { tabindex: "-1" }, title);
      into.replaceChildren(make("article", { class: "card" }, head,
        ...(note ? [make("p", { class: "note" }, note)] : []),
        make("p", { class: "buttons" }, ...actions(resource, title), closing),
        make("pre", { tabindex: "0", role: "region", "aria-label": "The resource as JSON" }, JSON.stringify(resource, null, 2))));
      quiet();
      head.focus();
    } catch (error) {
      if (number === asked.resource) {
        fault(error);
      }
    }
  }

  // ---- the view ----

  async function begin() {
    try {
      const all = await ask("/api/v1/directory");
      access = all.access;
      routes = all.routes;
    } catch (error) {
      begun = false; // so that it is asked again
      $("directory-note").textContent = error.message;
      return;
    }
    const isThere = routes.length > 0;
    $("directory-body").hidden = !isThere;
    $("directory-note").textContent = access === "off" ? "The directory is not shown here: the configuration says console: {directory: off}."
      : !isThere ? "" : mayChange() ? "What is changed here is changed for every client, and logged." : access === "write" ? "Your token is for reading." : "For reading. console: {directory: write} in the configuration allows changes.";
    if (!isThere && access !== "off") {
      lesson($("directory-lesson"), "No directory yet", "A route with service: scim makes one, which Entra ID and Okta can fill. In the configuration:",
        "routes:\n  - match: {path: /scim/v2/**}\n    service: scim\n    auth: {bearer-tokens: [{name: okta, sha256: \"…\"}]}   # printf %s TOKEN | sha256sum");
    }
    if (isThere) {
      choices(route, routes.map((each) => each.route));
      chooseRoute();
      await turn("", 0);
    }
  }
  /** Another list: names of attributes mean something else there. */
  function turnToList() {
    forget();
    filter.value = "";
    $("directory-list").replaceChildren();
    $("directory-total").textContent = "";
    $("directory-previous").disabled = true;
    $("directory-next").disabled = true;
    turn("", 0, { filter: "", by: "", descending: false });
  }
  route.addEventListener("change", () => {
    chooseRoute();
    turnToList();
  });
  tenant.addEventListener("change", turnToList);
  type.addEventListener("change", turnToList);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    forget();
    turn("", 0, { ...place.search, filter: filter.value.trim() });
  });
  /** A button that can go no further would lose the focus; the other one gets it. */
  function pages(pressed, other, go) {
    pressed.addEventListener("click", async () => {
      await go();
      if (pressed.disabled) {
        other.focus();
      }
    });
  }
  pages($("directory-next"), $("directory-previous"), () => turn(place.list.nextCursor, place.from + place.rows));
  pages($("directory-previous"), $("directory-next"), () => turn(place.list.previousCursor, null));

  /** Live figures change nothing here: it is read when the view is opened, and then when it is searched. */
  const directory = () => {
    if (!begun) {
      begun = true;
      begin();
    }
  };
  return { directory };
});
