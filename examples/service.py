"""Predictions over HTTP: `MODEL=model.onnx uvicorn service:app`."""

import json
import os

import numpy as np
import onnxruntime
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

session = onnxruntime.InferenceSession(os.environ["MODEL"], providers=["CPUExecutionProvider"])
classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
channels = session.get_inputs()[0].shape[2]
app = FastAPI()


class Request(BaseModel):
    sequences: list[list[list[float | None]]]  # sequences of steps of channels; null for a missing value


@app.post("/predict")
def predict(request: Request) -> dict[str, list]:
    lengths = np.array([len(sequence) for sequence in request.sequences], dtype=np.int64)
    steps = [step for sequence in request.sequences for step in sequence]
    if not lengths.size or lengths.min() == 0 or any(len(step) != channels for step in steps):
        raise HTTPException(422, f"`sequences` must have steps, each with {channels} channels")
    values = np.full((len(lengths), lengths.max(), channels), np.nan)
    values[np.arange(lengths.max()) < lengths[:, None]] = np.array(steps, dtype=float)
    (probabilities,) = session.run(None, {"values": values, "lengths": lengths})
    labels = [classes[i] for i in probabilities.argmax(axis=1)]
    return {"labels": labels, "probabilities": probabilities.tolist()}
