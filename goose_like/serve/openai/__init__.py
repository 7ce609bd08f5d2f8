"""OpenAI's protocol: models, chat completions and responses, so that its clients can use a profile as a model.

A request passes `endpoints`, the body of its API (`chat_body`, `responses_body`: JSON to an `AnswerRequest`), `history`
(the conversation so far), the shared `turn`, `response` (events to text and reasoning), and the encoder of its API
(`chat_encoder`, `responses_encoder`). The answer is only what the model says to the person. Progress of the profile's
own tools is reasoning, and work that the client cannot repeat travels, signed, in a field that clients send back.
"""
