"""The alert rules, the dashboard and the documentation of the metrics, against the metrics that a process reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from prometheus_client.parser import text_string_to_metric_families

from memadmin.deploy.counts.requests import POOL, REQUESTS, SECONDS
from memadmin.deploy.metrics.views import metrics_text
from memadmin.process_metrics import RUN_CHUNK_SECONDS, RUN_FAULTS, RUN_ROWS, counting_job, counting_store_call
from memadmin.web.navigation import SECTIONS

DOCS: Path = settings.CHECKOUT_DIR / "docs"
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DOCS / "monitoring" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((DOCS / "monitoring" / "grafana-dashboard.json").read_text())
DOCUMENT = (DOCS / "monitoring.md").read_text()
NAME = re.compile(r"\bmemadmin_\w+")
ROW = re.compile(r"^\| `(memadmin_\w+)` \| ([\w, ]*)\|", re.MULTILINE)


@pytest.fixture
def reported(db: None) -> dict[str, set[str]]:
    """Names of the metrics as Prometheus stores them, each with its labels, once a page was asked for."""
    REQUESTS.labels("healthz", "GET", "200").inc()
    SECONDS.labels("healthz").observe(0.1)
    POOL.labels("idle").set(1)
    with counting_job("drain_outbox"), counting_store_call("sqlalchemy"), RUN_CHUNK_SECONDS.labels("rotation").time():
        RUN_ROWS.labels("rotation").inc()
        RUN_FAULTS.labels("rotation").inc(0)
    found: dict[str, set[str]] = {}
    for metric in text_string_to_metric_families(metrics_text().decode()):
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        found[name] = {label for sample in metric.samples for label in sample.labels} - {"le"}
        if metric.type == "histogram":
            found |= {f"{name}_{part}": found[name] for part in ("bucket", "sum", "count")}
    return found


def expressions() -> list[str]:
    targets = [target for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [rule["expr"] for rule in ALERTS] + [target["expr"] for target in targets]


def test_rules_and_dashboard_name_metrics_that_are_reported(reported: dict[str, set[str]]) -> None:
    for expression in expressions():
        for name, selector in re.findall(r"(memadmin_\w+)(?:\{([^}]*)\})?", expression):
            assert name in reported, expression
            labels = set(re.findall(r"(\w+)(?:=|!=|=~|!~)\"", selector))
            assert labels <= reported[name] or not reported[name], expression


def test_every_metric_is_in_the_document_and_on_the_dashboard_or_in_a_rule(reported: dict[str, set[str]]) -> None:
    shown = set(NAME.findall(" ".join(expressions())))
    metrics = {re.sub(r"(memadmin_(?:request|job|run_chunk|store_call)_seconds)_\w+", r"\1", name) for name in reported}
    assert {name for name, _ in ROW.findall(DOCUMENT)} == metrics
    unused = {name for name in metrics if name not in shown and f"{name}_bucket" not in shown}
    assert unused == {"memadmin_audit_events", "memadmin_audit_oldest_unsequenced_seconds", "memadmin_fence_outbox"} | {
        "memadmin_audit_anchors_failing"
    }


def test_labels_in_the_document_are_those_of_the_metrics(reported: dict[str, set[str]]) -> None:
    for name, labels in ROW.findall(DOCUMENT):
        documented = {label for label in labels.replace(",", " ").split() if label}
        # Without runs there is no sample, and no label to compare with.
        assert documented == reported[name] or name == "memadmin_runs", name


def test_values_of_labels_in_rules_are_reported(db: None) -> None:
    text = metrics_text().decode()
    for rule in ALERTS:
        for name, selector in re.findall(r"(memadmin_\w+)\{([^}]*)\}", rule["expr"]):
            for label, values in re.findall(r"(state|problem)=~?\"([\w|]+)\"", selector):
                for each in values.split("|"):
                    is_there = re.search(rf'^{name}{{[^}}]*{label}="{each}"', text, re.MULTILINE)
                    assert is_there or name == "memadmin_runs", f"{rule['alert']}: {name} has no {label} {each}"


def test_every_alert_says_what_to_do() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert len(names) == len(set(names)) > 15
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert all(rule["annotations"][part].endswith(".") for part in ("summary", "action")), rule["alert"]
    assert re.findall(r"^### (Memadmin\w+)$", DOCUMENT, re.MULTILINE) == names
    for text in re.split(r"^### Memadmin\w+$", DOCUMENT, flags=re.MULTILINE)[1:]:
        assert text.strip()


def test_pages_that_alerts_name_are_in_the_navigation() -> None:
    titles = {place.title for places in SECTIONS.values() for place in places}
    remedies = " ".join([DOCUMENT, *(rule["annotations"]["action"] for rule in ALERTS)])
    named = set(re.findall(r"\bpage ([A-Z]\w+)", remedies))
    assert len(named) > 3
    assert named <= titles


def test_the_dashboard_can_be_imported() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["type"] for panel in panels} == {"row", "timeseries", "stat"}
    sources = {target["datasource"]["uid"] for panel in panels for target in panel.get("targets", ())}
    assert sources == {"${datasource}"}
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]
