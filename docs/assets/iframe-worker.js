// Search without a server: browsers do not start workers for pages that are opened as files (file://), so there
// the script of a worker runs in a hidden frame instead. The theme loads this before anything else.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.onload = () => {
        this.inside = inside
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      }
      inside.document.body.append(script)
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
  }
}
