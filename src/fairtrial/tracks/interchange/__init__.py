"""Other tools: their suites, results and traces come in; runs go out in their formats."""

from fairtrial.core.registry import Part

PARTS = {
    "importers": "importers",
    "run_directly": {"k_eval": "importers.k_eval:KEval"},
    "results": "results",
    "traces": {"otlp": "traces.otlp", "logfire": "traces.logfire", "langfuse": "traces.langfuse"},
    "logs": {
        "claude_code": "logs.claude_code",
        "codex": "logs.codex",
        "gemini_cli": "logs.gemini_cli",
        "opencode": "logs.opencode",
        "harbor": "logs.harbor",
        "atif": "logs.atif",
        "otlp": "logs.otlp",
    },
    "commands": {
        "import": Part("commands.options:import_", "Import results from other tools, or convert their suites.")
    },
    "reports": {
        "inspect": "formats:INSPECT",
        "inspect_json": "formats:INSPECT_JSON",
        "eee": "formats:EEE",
        "eee_lines": "formats:EEE_LINES",
        "atif": "formats:ATIF",
        "atif_lines": "formats:ATIF_LINES",
        "otlp": "formats:OTLP",
        "mlflow": "formats:MLFLOW",
        "wandb": "formats:WANDB",
    },
}
