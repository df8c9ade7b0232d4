// Small tools for the page's elements. Names of elections and candidates are anybody's to choose: they become text, never markup.

export const at = (id) => document.getElementById(id);

// Writes only what has changed, so that nothing is selected, announced or laid out again for nothing.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

export function tone(element, name) {
  if (element.dataset.tone !== name) element.dataset.tone = name;
}

// An element with attributes, and with texts and elements in it.
export function make(name, attributes, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

export const badge = (text, tone) => make("span", { class: "badge small", "data-tone": tone }, text);

const madeOf = new WeakMap();

// Replaces what is in an element, if it is made of something else than the last time.
export function fill(element, key, build) {
  const text = JSON.stringify(key);
  if (madeOf.get(element) === text) return;
  madeOf.set(element, text);
  element.replaceChildren(...build());
}
