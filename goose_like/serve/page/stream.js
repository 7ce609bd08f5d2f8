// A stream of server-sent events, read as it comes.

/** Yields `{event, data}` of a response; comments and what is not closed by an empty line are no events. */
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

/** What a refusal means, in a sentence. */
export async function refusal(response) {
  const text = await response.text();
  const wait = response.headers.get("retry-after");
  let detail = text.slice(0, 300);
  try {
    const told = JSON.parse(text).detail;
    if (Array.isArray(told)) detail = told.map((one) => `${(one.loc || []).join(".")}: ${one.msg}`).join("; ");
    else if (told) detail = String(told);
  } catch {
    // not JSON: the text itself is what there is
  }
  return [`The server refused (${response.status})`, detail, wait ? `try again in ${wait} s` : ""].filter(Boolean).join("; ");
}
