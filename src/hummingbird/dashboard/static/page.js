"use strict";
// Live updates, and keys for those who do not use a mouse. Fragments are made by the server, where everything is escaped.
(() => {
  for (const place of document.querySelectorAll("[data-live]")) {
    const after = place.dataset.after;
    const source = new EventSource(place.dataset.live + (after === undefined ? "" : "?after=" + after));
    source.addEventListener("runs", (news) => {
      if (!place.contains(document.activeElement)) { place.innerHTML = news.data; showLocalTimes(place); }
    });
    source.addEventListener("entries", (news) => {
      const below = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 200;
      place.insertAdjacentHTML("beforeend", news.data);
      showLocalTimes(place);
      pairCalls(place);
      if (below) place.lastElementChild.scrollIntoView({ block: "end" });
      const over = document.getElementById("over");
      if (over) over.hidden = !place.lastElementChild.matches(".ended");
    });
    source.addEventListener("told", (news) => { document.getElementById("told").textContent = news.data; });
    source.addEventListener("reload", () => {
      source.close();
      const last = Number(sessionStorage.getItem("reloaded") || 0);
      if (Date.now() - last < 10000) return; // once is enough
      sessionStorage.setItem("reloaded", String(Date.now()));
      location.reload();
    });
    addEventListener("pagehide", () => source.close());
  }
  // A result takes in the row of its call, as the server does for those that it sends together.
  const pairCalls = (place) => {
    for (const end of place.querySelectorAll("li[data-settles]")) {
      const start = [...place.querySelectorAll("li[data-call]")].filter((one) => one.dataset.call === end.dataset.settles).pop();
      delete end.dataset.settles;
      if (!start) continue;
      const given = start.querySelector("pre");
      if (given) {
        const said = end.querySelector("summary span");
        said.textContent = start.querySelector("summary span").textContent + " → " + said.textContent;
        end.querySelector("summary").after(given);
      }
      const focused = start.contains(document.activeElement);
      const anchor = document.createElement("a");
      anchor.id = start.id;
      start.remove();
      end.prepend(anchor);
      if (focused) end.focus();
    }
  };
  const two = (number) => String(number).padStart(2, "0");
  const showLocalTimes = (where) => {
    for (const one of where.querySelectorAll("time[datetime]")) {
      const at = new Date(one.dateTime);
      if (one.dataset.local || isNaN(at)) continue;
      one.dataset.local = "1";
      const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
      const whole = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-") + " " + time;
      one.title = whole + ", here";
      if (!one.matches(".ago")) one.textContent = one.textContent.length > 8 ? whole : time;
    }
  };
  showLocalTimes(document);
  const zone = document.getElementById("zone");
  if (zone) zone.textContent = "Times are those of this browser; days are UTC.";
  const typing = (where) => where.matches("input, textarea, select");
  document.addEventListener("keydown", (pressed) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || typing(document.activeElement)) return;
    const rows = [...document.querySelectorAll(".row")];
    const at = rows.indexOf(document.activeElement.closest(".row"));
    const row = at < 0 ? null : rows[at];
    if (pressed.key === "/") document.querySelector("header [type=search]")?.focus();
    else if (pressed.key === "j") rows[Math.min(rows.length - 1, at + 1)]?.focus();
    else if (pressed.key === "k") rows[Math.max(0, at - 1)]?.focus();
    else if (pressed.key === "g") location.assign("/runs");
    else if (pressed.key === "o" && row) {
      const fold = row.querySelector("details");
      if (fold) fold.open = !fold.open; else row.querySelector("a")?.click();
    } else return;
    pressed.preventDefault();
  });
})();
