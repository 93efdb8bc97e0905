"use strict";
(function () {
  var tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  document.body.appendChild(tip);
  function hide() { tip.style.display = "none"; }
  function show(e) {
    var mark = e.target.closest ? e.target.closest("[data-tip]") : null;
    if (!mark) { hide(); return; }
    tip.textContent = mark.getAttribute("data-tip");
    tip.style.display = "block";
    var w = tip.offsetWidth, x = e.clientX + 14;
    if (x + w > window.innerWidth - 8) x = e.clientX - w - 14;
    tip.style.left = Math.max(8, x) + "px";
    tip.style.top = (e.clientY + 16) + "px";
  }
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show); /* a tap does not move */
  document.addEventListener("pointerleave", function (e) {
    if (e.pointerType !== "touch") hide(); /* a finger that is lifted leaves, too */
  });
  window.addEventListener("scroll", hide, { passive: true });

  document.querySelectorAll("figure.plot").forEach(function (figure) {
    figure.querySelectorAll(".key").forEach(function (key) {
      key.addEventListener("click", function () {
        var on = key.getAttribute("aria-pressed") !== "true";
        key.setAttribute("aria-pressed", on);
        figure.querySelectorAll('.series[data-s="' + key.dataset.s + '"]').forEach(function (g) {
          g.classList.toggle("off", !on);
        });
      });
    });
    var area = figure.querySelector("svg.zoom");
    if (area) zoomable(figure, area);
  });

  /* On paper nothing can be opened; tables of pages stay folded, their CSV has them. */
  var opened = [];
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (d) {
      if (d.querySelectorAll("tr").length > 60) return;
      d.open = true;
      opened.push(d);
    });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (d) { d.open = false; });
    opened = [];
  });

  function round(v) {
    var p = Math.pow(10, Math.floor(Math.log10(v)));
    var m = v / p;
    return p * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
  }

  /* Drag over a time axis to look closer, double-click to go back. */
  function zoomable(figure, area) {
    var full = area.getAttribute("viewBox").split(" ").map(Number);
    var lo = +area.dataset.lo, hi = +area.dataset.hi;
    var view = [full[0], full[2]], start = null;
    var ticks = figure.querySelector(".xticks");
    var y = ticks && ticks.firstChild ? ticks.firstChild.getAttribute("y") : 0;
    function valueAt(x) { return lo + (x - full[0]) / full[2] * (hi - lo); }
    function show() {
      area.setAttribute("viewBox", view[0] + " " + full[1] + " " + view[1] + " " + full[3]);
      if (!ticks) return;
      var a = valueAt(view[0]), b = valueAt(view[0] + view[1]), step = round((b - a) / 8);
      ticks.textContent = "";
      for (var v = Math.ceil(a / step) * step; v <= b + step / 1e6; v += step) {
        var t = document.createElementNS("http://www.w3.org/2000/svg", "text");
        t.setAttribute("class", "tick");
        t.setAttribute("text-anchor", "middle");
        t.setAttribute("y", y);
        t.setAttribute("x", full[0] + (v - a) / (b - a) * full[2]);
        t.textContent = +v.toPrecision(6);
        ticks.appendChild(t);
      }
    }
    function at(e) {
      var box = area.getBoundingClientRect();
      return view[0] + Math.min(1, Math.max(0, (e.clientX - box.left) / box.width)) * view[1];
    }
    area.addEventListener("pointerdown", function (e) { start = at(e); });
    window.addEventListener("pointerup", function (e) {
      if (start === null) return;
      var end = at(e), from = Math.min(start, end), width = Math.abs(end - start);
      start = null;
      if (width < full[2] / 500) return;
      view = [from, width];
      show();
    });
    area.addEventListener("dblclick", function () { view = [full[0], full[2]]; show(); });
  }

  var theme = document.querySelector(".theme");
  if (theme) theme.addEventListener("click", function () {
    var root = document.documentElement;
    var dark = root.dataset.theme ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
