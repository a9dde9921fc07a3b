"""The formats of other tools that runs can be written in, and the services that they can be sent to."""

from functools import partial

from fairtrial.reports.format import Format

_format = partial(Format, home="fairtrial.tracks.interchange.exports")
INSPECT = _format("inspect", "inspect-ai log, for a run with one arm", (".eval",), binary=True, folder=True, one="arm")
INSPECT_JSON = _format("inspect_json", "inspect-ai log as JSON, for a run with one arm", (".inspect.json",), one="arm")
EEE = _format("eee", "Every Eval Ever, for a run with one model", (".eee.json",), folder=True, one="target")
EEE_LINES = _format("eee_lines", "Every Eval Ever, one record per model", (".eee.jsonl",))
MLFLOW = _format("mlflow", "MLflow, one run per arm", ())
WANDB = _format("wandb", "Weights & Biases, one run per arm", ())
ATIF = _format("atif", "ATIF, for a run with one trial", (".atif.json",), folder=True, one="trial")
ATIF_LINES = _format("atif_lines", "ATIF, one trajectory per line", (".atif.jsonl",))
OTLP = _format("otlp", "OpenTelemetry spans (OTLP as JSON)", (".otlp.json",))
