// What is typed goes to the dashboard from the start, without a click: as soon as its connection is there.
new MutationObserver((_, observer) => {
  if (document.body.classList.contains("-loaded")) {
    observer.disconnect();
    document.querySelector("textarea")?.focus();
  }
}).observe(document.body, { attributes: true, attributeFilter: ["class"] });
