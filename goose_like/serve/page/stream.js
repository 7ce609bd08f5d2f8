// A reader of server-sent events.

/** Yield `{event, data}` for each event of a response; ignore comments and an incomplete last event. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = "";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).replaceAll("\r\n", "\n").split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { event, data: JSON.parse(data.join("\n")) };
          [event, data] = ["", []];
        } else if (line.startsWith("event:")) event = line.slice(6).trimStart();
        else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Explain an error response in one sentence. */
export async function refusal(response) {
  const text = await response.text();
  const wait = response.headers.get("retry-after");
  let detail = text.slice(0, 300);
  try {
    const told = JSON.parse(text).detail;
    if (Array.isArray(told)) detail = told.map((one) => `${(one.loc || []).join(".")}: ${one.msg}`).join("; ");
    else if (told) detail = String(told);
  } catch {
    // not JSON: use the text
  }
  return [`The server refused (${response.status})`, detail, wait ? `try again in ${wait} s` : ""].filter(Boolean).join("; ");
}
