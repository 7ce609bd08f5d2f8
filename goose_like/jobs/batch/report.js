const words = document.querySelector("input");
const status = document.querySelector("select");
const rows = Array.from(document.querySelectorAll("tbody tr"));
const texts = rows.map((row) => row.textContent.toLowerCase());

function filter() {
  const wanted = words.value.toLowerCase().split(/\s+/);
  let count = 0;
  rows.forEach((row, index) => {
    const hasStatus = !status.value || row.dataset.status === status.value;
    const isShown = hasStatus && wanted.every((word) => texts[index].includes(word));
    row.hidden = !isShown;
    count += isShown;
  });
  document.querySelector("output").value = `${count} of ${rows.length}`;
}

words.addEventListener("input", filter);
status.addEventListener("change", filter);
filter();
