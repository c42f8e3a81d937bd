// Finds pages by the words in them. The index is fetched when somebody first types.
const root = document.currentScript.dataset.root;
const field = document.getElementById("search");
const list = document.getElementById("found");
let index;

async function find() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0;
  list.replaceChildren();
  if (list.hidden) return;
  index ??= fetch(`${root}/search.json`).then((answer) => answer.json());
  const found = (await index).filter((page) => words.every((word) => page.text.includes(word)));
  found.sort((a, b) => hits(b, words) - hits(a, words));
  for (const page of found.slice(0, 12)) {
    const link = document.createElement("a");
    link.href = `${root}/${page.path}`;
    link.textContent = page.title;
    list.append(document.createElement("li"));
    list.lastChild.append(link);
  }
  if (found.length === 0) list.append("Nothing found");
}

// A word of the title counts more than any in the text.
function hits(page, words) {
  const title = page.title.toLowerCase();
  return words.reduce((sum, word) => sum + page.text.split(word).length - 1 + (title.includes(word) ? 1000 : 0), 0);
}

field.addEventListener("input", find);
