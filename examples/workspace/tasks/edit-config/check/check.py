import json

with open("server.json") as file:
    config = json.load(file)
expected = {
    "host": "0.0.0.0",
    "port": 8443,
    "tls": {"enabled": True, "certificate": "cert.pem"},
    "workers": 4,
}
assert config == expected, f"server.json has {config}"
