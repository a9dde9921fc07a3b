// Pages opened from a folder (file://) may not start workers, and search runs in one: it gets a frame instead.
if (location.protocol === "file:") {
  // As between a page and a worker: a copy, and not before the sender is done.
  const deliver = (data, take) => {
    const event = new MessageEvent("message", { data: structuredClone(data) });
    setTimeout(() => take(event));
  };

  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => deliver(data, (event) => this.onmessage?.(event));
      inside.importScripts = (...addresses) => Promise.all(addresses.map((one) => this.load(one)));
      this.loaded = this.load(address);
    }

    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = new URL(address, location.href);
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
    }

    async postMessage(data) {
      await this.loaded;
      deliver(data, (event) => this.frame.contentWindow.onmessage?.(event));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
