"use strict";
// SPDX-License-Identifier: Apache-2.0
(() => {
  const $ = (id) => document.getElementById(id);
  const wish = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = () => { document.documentElement.dataset.theme = wish.matches ? "dark" : "light"; };
  wish.addEventListener("change", paint);
  paint();

  function refuse(text) {
    const line = document.createElement("p");
    line.className = "error";
    line.textContent = text;
    $("login-answer").replaceChildren(line);
    $("token").value = "";
    $("token").focus();
  }

  $("login-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = $("token").value;
    if (!/^[!-~]+$/.test(token)) {
      refuse("A token is printable ASCII without spaces.");
      return;
    }
    try {
      const response = await fetch("/api/v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
      if (response.ok) {
        location.reload();
        return;
      }
      const problem = await response.json();
      refuse(problem.detail || problem.title || `status ${response.status}`);
    } catch (error) {
      refuse(String(error.message || error));
    }
  });
})();
