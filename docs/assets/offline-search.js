"use strict";

// The search of the theme runs in a worker, which browsers refuse to a page that is opened from disk. There the same
// script runs in a hidden frame: it sees the same two functions, addEventListener and postMessage.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = () => {};
      this.loaded = new Promise((resolve) => {
        const script = frame.contentDocument.createElement("script");
        script.addEventListener("load", resolve);
        script.src = address;
        frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  };
}
