"use strict";

// Two pages work without this script, but reload: it replaces the verdicts in place, and updates the progress bar.

function start() {
  const form = document.getElementById("judge");
  const job = document.getElementById("job");
  if (form) judgeInPlace(form);
  if (job) showProgress(job.dataset.job);
}

function judgeInPlace(form) {
  const status = document.getElementById("status");
  const verdicts = document.getElementById("verdicts");
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
    status.textContent = "the models are running …";
    try {
      const response = await fetch("/", { method: "POST", body: new FormData(form), headers: { "X-Part": "verdicts" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const part = page.querySelector(response.ok ? "section" : ".problem");
      verdicts.replaceChildren(part ? document.importNode(part, true) : "");
      status.textContent = "";
    } catch (error) {
      status.textContent = "the server cannot be reached. Is it still running?";
    }
    button.disabled = false;
  });
}

async function showProgress(id) {
  const bar = document.getElementById("progress");
  const text = document.getElementById("how-far");
  const status = document.getElementById("status");
  let announced = -1;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    let job;
    try {
      const response = await fetch(`/api/jobs/${id}`);
      if (!response.ok) throw new Error(String(response.status));
      job = await response.json();
    } catch (error) {
      status.textContent = "the server cannot be reached; the evaluation resumes when it runs again.";
      continue;
    }
    if (job.state !== "waiting" && job.state !== "running") {
      location.reload();
      return;
    }
    bar.value = job.percent;
    const far = `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")}`;
    text.textContent = job.total ? `${job.state}: ${job.model}, ${far}` : job.state;
    // Screen readers read the status aloud: at every quarter, and not at every step.
    if (Math.floor(job.percent / 25) !== announced) {
      announced = Math.floor(job.percent / 25);
      status.textContent = `${job.percent} per cent`;
    }
  }
}

start();
