"""OpenAI's protocol: models and chat completions, so that its clients can use a profile as a model.

A request passes `endpoints`, `request` (JSON to a `ChatRequest`), `history` (the conversation so far), the shared
`turn`, and `response` (events to chunks, or to one object). `content` is only what the model says to the person.
Progress of the profile's own tools is `reasoning_content`, and work that the client cannot repeat travels, signed, in
`reasoning_details`, which clients send back.
"""
