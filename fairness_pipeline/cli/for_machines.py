"""Writes the results of a run for a build server: JUnit XML, and a Markdown summary for a pull request."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairness_pipeline.cli.gate import Entry, Examined, describe_blind_verdicts, describe_rule, detectable
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.answers import answer_ages
from fairness_pipeline.reporting.audited import audited_by
from fairness_pipeline.reporting.changes import worth_telling
from fairness_pipeline.reporting.next_steps import next_steps
from fairness_pipeline.reporting.results import NOT_MEASURED, Audit, counted, findings, shown_verdict, worst_first
from fairness_pipeline.reporting.rule import Rule
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import FINDINGS

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = re.compile(r"([\\`*_{}\[\]#|<>~])")
_SENTENCES = 10


def write_for_machines(
    plan: Plan, rule: Rule, examined: Examined, junit: str | None, summary: str | None, reasons: Sequence[str] = ()
) -> list[str]:
    """Writes the requested files and returns them.

    Args:
        plan: What was run.
        rule: The conditions that close the gate; if it refuses nothing, no test fails.
        examined: What `cli.gate.examine` makes of the rule.
        junit: The file for JUnit's XML.
        summary: The file for Markdown.
        reasons: Why partitions were not made.
    """
    texts = {}
    if junit:
        texts[junit] = _junit(plan, rule, examined, reasons)
    if summary:
        texts[summary] = _summary(plan, rule, examined, reasons)
    for path, text in texts.items():
        write_text(Path(path), text)
    return list(texts)


def _junit(plan: Plan, rule: Rule, examined: Examined, reasons: Sequence[str]) -> str:
    """Returns a suite for each study, a test for each verdict; what closes the gate fails, missing ones are errors."""
    closing, alone = ({id(entry.row) for entry in entries} for entries in (examined.closing, examined.alone))
    root = ET.Element("testsuites", name=f"fairness-pipeline, profile {plan.project.name}")
    for study in plan.project.studies:
        audits = [audit for owner, audit in examined.audits if owner is study]
        if not audits:
            continue
        suite = ET.SubElement(root, "testsuite", name=study.name)
        rows = {id(entry.row): entry for entry in (*examined.looked_at, *examined.closing) if entry.study is study}
        for entry in rows.values():
            test = ET.SubElement(suite, "testcase", classname=_class(study, entry.audit), name=entry.name)
            if id(entry.row) in closing:
                message = _message(plan, entry)
                failure = ET.SubElement(test, "failure", type=entry.row["verdict"], message=message)
                failure.text = _numbers(entry)
            else:
                note = " (not after correction over all verdicts)" if id(entry.row) in alone else ""
                ET.SubElement(test, "system-out").text = f"{shown_verdict(entry.row)}{note}: {_numbers(entry)}"
        fresh = {audit.name for owner, audit in examined.fresh if owner is study}
        for audit in audits:
            reason = _missing(audit, audit.name in fresh)
            if reason:
                test = ET.SubElement(suite, "testcase", classname=_class(study, audit), name="audit")
                explanation = "; ".join([reason, *reasons])
                ET.SubElement(test, "error" if rule.refused else "skipped", message=_clean(explanation))
        if rule.refused and examined.open and not examined.closing:
            test = ET.SubElement(suite, "testcase", classname=study.name, name="gate")
            ET.SubElement(test, "error", message=_clean(examined.open))
        for tag in ("failure", "error", "skipped"):
            suite.set(tag if tag == "skipped" else f"{tag}s", str(len(suite.findall(f"testcase/{tag}"))))
        suite.set("tests", str(len(suite.findall("testcase"))))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _missing(audit: Audit, fresh: bool) -> str | None:
    """Returns why an audit has no current verdicts; None if it has."""
    if not audit.measured:
        return NOT_MEASURED
    return audit.degenerate if fresh else "out of date: it was measured with other settings, answers or files"


def _class(study: AnyStudy, audit: Audit) -> str:
    """Returns the study and the partition joined by dots, as build servers group tests."""
    return ".".join(name.replace(".", "_") for name in (study.name, *audit.key.values()))


def _message(plan: Plan, entry: Entry) -> str:
    if shown_verdict(entry.row) in FINDINGS:
        return _clean(entry.study.finding(plan.project.parts[entry.study.name], entry.audit.key, entry.row))
    return _clean(f"{shown_verdict(entry.row)}: {entry.full_name}")


def _numbers(entry: Entry) -> str:
    """Returns a verdict's difference, with its interval and adjusted p where it has them."""
    row = entry.study.decisive(entry.row)
    parts = [f"difference {with_unit(row)}"]
    if row.get("ci_low") is not None and row.get("ci_high") is not None:
        parts.append(f"95% interval {row['ci_low']:.3g} to {row['ci_high']:.3g}")
    if row.get("p_holm") is not None:
        parts.append(f"adjusted p {row['p_holm']:.2g}")
    return _clean(", ".join(parts))


def _clean(text: str) -> str:
    """Returns the text with each character replaced that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)


def _summary(plan: Plan, rule: Rule, examined: Examined, reasons: Sequence[str]) -> str:
    """Returns the verdicts in Markdown: what closes the gate, then a table and the worst findings of each study."""
    lines = [f"## Fairness, profile {_plain(plan.project.name)}", ""]
    if rule.refused:
        closed = "; ".join(_plain(entry.full_name) for entry in examined.closing[:_SENTENCES])
        more = f" and {len(examined.closing) - _SENTENCES} more" if len(examined.closing) > _SENTENCES else ""
        closes = f"**The gate ({', '.join(rule.refused)}) is closed** by {closed}{more}."
        passes = f"The gate ({', '.join(rule.refused)}) lets it pass."
        stays = f"**The gate ({', '.join(rule.refused)}) stays closed**"
        undecided = f"{stays}, as it lacks verdicts: {_plain(examined.open)}."
        lines += [closes if examined.closing else undecided if examined.open else passes, ""]
    if rule.refused:
        notes = (
            *describe_rule(examined, rule),
            *describe_blind_verdicts(examined),
            *detectable(plan, examined.looked_at),
        )
        lines += [f"- {_plain(line)}" for line in notes]
    lines += [f"- {_plain(age)}" for age in answer_ages(plan.lineage, plan.lake, examined.fresh)]
    lines += ["", *_compared(examined)] if examined.baseline else [""]
    if reasons:
        lines += [*(f"- Not made: {_plain(reason)}" for reason in reasons[:_SENTENCES]), ""]
    fresh = {(study.name, audit.name) for study, audit in examined.fresh}
    for study in plan.project.studies:
        audits = worst_first(study, [audit for owner, audit in examined.audits if owner is study])
        if audits:
            lines += _study_section(plan, study, audits, {name for owner, name in fresh if owner == study.name})
    lines.append("Texts in the report may offend. A verdict holds for this model, these words and these texts.")
    return "\n".join(lines) + "\n"


def _compared(examined: Examined) -> Iterable[str]:
    """Yields the comparison with the baseline: the verdicts that turned and the gaps that are shown to have changed."""
    yield f"### Before and now, compared with {_plain(examined.baseline)}"
    yield ""
    changes, others = worth_telling(examined.changes)
    if changes:
        yield "| verdict | before | now | the gap |"
        yield "| --- | --- | --- | --- |"
    for change in changes:
        cells = (
            change.name,
            shown_verdict(change.then) if change.then else "none",
            shown_verdict(change.row),
            change.description,
        )
        yield "| " + " | ".join(_plain(cell) for cell in cells) + (" **worse** |" if change.worse else " |")
    if changes:
        yield ""
    yield f"{others[0].upper()}{others[1:]}."
    yield ""


def _study_section(plan: Plan, study: AnyStudy, audits: list[Audit], fresh: set[str]) -> Iterable[str]:
    verdicts = list(counted(study, audits)) or ["verdict"]
    yield f"### {_plain(study.title)}"
    yield ""
    yield "| " + " | ".join([*study.axes, *verdicts]) + " |"
    yield "|" + " --- |" * len(study.axes) + " ---: |" * len(verdicts)
    for audit in audits:
        counts = counted(study, [audit])
        cells = [str(counts.get(name, "")) for name in verdicts]
        if missing := _missing(audit, audit.name in fresh):
            cells = [_plain(missing), *[""] * (len(verdicts) - 1)]
        yield "| " + " | ".join([*map(_plain, audit.key.values()), *cells]) + " |"
    yield ""
    part = plan.project.parts[study.name]
    sentences = findings(study, part, [audit for audit in audits if audit.name in fresh])
    yield from (f"- {_plain(sentence)}" for sentence in sentences[:_SENTENCES])
    if len(sentences) > _SENTENCES:
        yield f"- and {number_of(len(sentences) - _SENTENCES, 'more audit')} with a difference"
    if sentences:
        yield ""
    judged = [audit for audit in audits if audit.name in fresh]
    if judged:
        yield "Audited, by the beginning of SHA-256:"
        yield ""
        for audit in judged[:_SENTENCES]:
            yield f"- {_plain(audited_by(plan.lineage, plan.lake, study, audit.key).line)}"
        if len(judged) > _SENTENCES:
            yield f"- and {len(judged) - _SENTENCES} more, in the report"
        yield ""
    yield "What to do now:"
    yield ""
    yield from (f"- {_plain(step.line)}" for step in next_steps(study, part, audits))
    yield ""


def _plain(text: str) -> str:
    """Returns text without Markdown, HTML or mentions of users: it may quote corpora and models."""
    text = text.replace("@", "@\u200b")
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
