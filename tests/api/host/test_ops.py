"""The API reference, its pages and the metrics."""

import re

from tests.support.api.caller import Api


def test_the_openapi_document_is_of_the_served_routes(api: Api) -> None:
    from moot.api.routes import ENDPOINTS

    found = api.with_key(None).get("/v1/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    served = {(row.path, row.method.lower()) for row in ENDPOINTS}
    assert {(path, verb) for path, verbs in found["paths"].items() for verb in verbs} == served
    names = [row["operationId"] for verbs in found["paths"].values() for row in verbs.values()]
    assert len(names) == len(set(names))
    text = api.get("/v1/openapi.json").text
    for reference in set(re.findall(r'"#/components/schemas/([^"]+)"', text)):
        assert reference in found["components"]["schemas"]


def test_the_openapi_document_is_valid_where_its_schema_is_at_hand(api: Api) -> None:
    """At least the schemas inside it are schemas."""
    import jsonschema_rs

    found = api.get("/v1/openapi.json").json()
    for name, schema in found["components"]["schemas"].items():
        inlined = {"$ref": f"#/components/schemas/{name}", "components": found["components"]}
        jsonschema_rs.Draft202012Validator(inlined)
        assert schema
    for verbs in found["paths"].values():
        for operation in verbs.values():
            for parameter in operation["parameters"]:
                jsonschema_rs.Draft202012Validator(parameter["schema"])


def test_the_pages_are_whole(api: Api) -> None:
    """The reference works without the network: all it loads is served here."""
    page = api.get("/docs").text
    for name in re.findall(r'(?:src|href)="(/[^"#]*)"', page):
        assert api.get(name).status_code == 200
    assert "http://" not in page
    assert "https://" not in page
    assert api.get("/").json()["links"]
    for link in api.get("/").json()["links"].values():
        assert api.get(link).status_code == 200


def test_metrics_are_in_prometheus_text(api: Api) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    before = _counts(api.get("/metrics").text)
    api.run("conformance-noop")
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    after = _counts(answer.text)
    assert after["openwop_run_created_total"] == before["openwop_run_created_total"] + 1
    families = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"openwop_run_completed", "moot_http_requests", "moot_streams"} <= families
    assert "run_" not in re.sub(r"openwop_run_\w+|\{run_id\}", "", answer.text)


def _counts(text: str) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}
