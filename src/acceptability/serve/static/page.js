"use strict";

// A little help for two pages: verdicts come without a reload, and a progress bar moves.

function begin() {
  const form = document.getElementById("judge");
  const job = document.getElementById("job");
  if (form) judgeInPlace(form);
  if (job) follow(job.dataset.job);
}

function judgeInPlace(form) {
  const status = document.getElementById("status");
  const place = document.getElementById("verdicts");
  const button = form.querySelector("button[type=submit]");
  const example = document.getElementById("example");
  example.hidden = false;
  example.addEventListener("click", () => {
    form.first.value = "The author that the critics praise is famous.";
    form.second.value = "The author that the critics praise are famous.";
    form.requestSubmit();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && event.target.tagName === "TEXTAREA") {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    status.textContent = "asking the models …";
    try {
      const response = await fetch("/", { method: "POST", body: new FormData(form), headers: { "X-Part": "verdicts" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const found = page.querySelector(response.ok ? "section" : ".problem");
      place.replaceChildren(found ? document.importNode(found, true) : "");
      status.textContent = "";
    } catch (error) {
      status.textContent = "the server cannot be reached. Is it still running?";
    }
    button.disabled = false;
  });
}

async function follow(id) {
  const bar = document.getElementById("progress");
  const text = document.getElementById("how-far");
  const status = document.getElementById("status");
  let told = -1;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    let job;
    try {
      const response = await fetch(`/api/jobs/${id}`);
      if (!response.ok) throw new Error(String(response.status));
      job = await response.json();
    } catch (error) {
      status.textContent = "the server cannot be reached; the evaluation goes on when it runs again.";
      continue;
    }
    if (job.state !== "waiting" && job.state !== "running") {
      location.reload();
      return;
    }
    bar.value = job.percent;
    const far = `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")}`;
    text.textContent = job.total ? `${job.state}: ${job.model}, ${far}` : job.state;
    // Said aloud every quarter, not at every step.
    if (Math.floor(job.percent / 25) !== told) {
      told = Math.floor(job.percent / 25);
      status.textContent = `${job.percent} per cent`;
    }
  }
}

begin();
