// Browsers refuse `new Worker(url)` for pages that are opened from a disk. There, the script of a worker is run in a
// hidden frame instead, and the two sides hand messages to each other directly: the site's search then needs no server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html><title>search</title>"
      const waiting = []
      let inner = null
      this.postMessage = data => (inner ? inner(data) : waiting.push(data))
      this.terminate = () => frame.remove()
      const answer = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      frame.onload = () => {
        const world = frame.contentWindow
        world.postMessage = answer
        const script = frame.contentDocument.createElement("script")
        script.src = url
        script.onload = () => {
          inner = data => world.dispatchEvent(new world.MessageEvent("message", { data }))
          waiting.forEach(inner)
        }
        frame.contentDocument.body.append(script)
      }
      const start = () => document.body.append(frame)
      if (document.body) start()
      else addEventListener("DOMContentLoaded", start)
    }
  }
}
