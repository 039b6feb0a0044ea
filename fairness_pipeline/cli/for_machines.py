"""What a run found, for a build server: JUnit's XML, and a summary in Markdown for a pull request."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairness_pipeline.cli.gate import Entry, Examined, detectable, told_before, told_rule
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.answers import answer_ages
from fairness_pipeline.reporting.audited import audited_by
from fairness_pipeline.reporting.changes import worth_telling
from fairness_pipeline.reporting.next_steps import next_steps
from fairness_pipeline.reporting.results import NOT_MEASURED, Audit, counted, findings, said, worst_first
from fairness_pipeline.reporting.rule import Rule
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import FINDINGS

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = re.compile(r"([\\`*_{}\[\]#|<>~])")
_SENTENCES = 10


def write_for_machines(
    plan: Plan, rule: Rule, found: Examined, junit: str | None, summary: str | None, reasons: Sequence[str] = ()
) -> list[str]:
    """Writes what is asked for; returns the files.

    Args:
        plan: What was run.
        rule: What closes the gate; without anything refused no test fails.
        found: What `cli.gate.examine` makes of the rule.
        junit: The file for JUnit's XML.
        summary: The file for Markdown.
        reasons: Why something was not made.
    """
    texts = {}
    if junit:
        texts[junit] = _junit(plan, rule, found, reasons)
    if summary:
        texts[summary] = _summary(plan, rule, found, reasons)
    for path, text in texts.items():
        with replacing(Path(path)) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return list(texts)


def _junit(plan: Plan, rule: Rule, found: Examined, reasons: Sequence[str]) -> str:
    """A suite for each study, a test for each verdict; what closes the gate failed, what it lacks is an error."""
    closing, alone = ({id(entry.row) for entry in own} for own in (found.closing, found.alone))
    whole = ET.Element("testsuites", name=f"fairness-pipeline, profile {plan.project.name}")
    for study in plan.project.studies:
        audits = [audit for own, audit in found.audits if own is study]
        if not audits:
            continue
        suite = ET.SubElement(whole, "testsuite", name=study.name)
        rows = {id(entry.row): entry for entry in (*found.looked_at, *found.closing) if entry.study is study}
        for entry in rows.values():
            test = ET.SubElement(suite, "testcase", classname=_class(study, entry.audit), name=entry.name)
            if id(entry.row) in closing:
                message = _told(plan, entry)
                failure = ET.SubElement(test, "failure", type=entry.row["verdict"], message=message)
                failure.text = _numbers(entry)
            else:
                passed = " (not after correction over all verdicts)" if id(entry.row) in alone else ""
                ET.SubElement(test, "system-out").text = f"{said(entry.row)}{passed}: {_numbers(entry)}"
        fresh = {audit.name for own, audit in found.fresh if own is study}
        for audit in audits:
            why = _missing(audit, audit.name in fresh)
            if why:
                test = ET.SubElement(suite, "testcase", classname=_class(study, audit), name="audit")
                told = "; ".join([why, *reasons])
                ET.SubElement(test, "error" if rule.refused else "skipped", message=_clean(told))
        if rule.refused and found.open and not found.closing:
            test = ET.SubElement(suite, "testcase", classname=study.name, name="gate")
            ET.SubElement(test, "error", message=_clean(found.open))
        for what in ("failure", "error", "skipped"):
            suite.set(what if what == "skipped" else f"{what}s", str(len(suite.findall(f"testcase/{what}"))))
        suite.set("tests", str(len(suite.findall("testcase"))))
    ET.indent(whole)
    return ET.tostring(whole, encoding="unicode", xml_declaration=True) + "\n"


def _missing(audit: Audit, fresh: bool) -> str | None:
    """Why an audit says nothing now; None if it does."""
    if not audit.measured:
        return NOT_MEASURED
    return audit.degenerate if fresh else "out of date: it was measured with other settings, answers or files"


def _class(study: AnyStudy, audit: Audit) -> str:
    """The names between dots, as build servers group tests."""
    return ".".join(name.replace(".", "_") for name in (study.name, *audit.key.values()))


def _told(plan: Plan, entry: Entry) -> str:
    if said(entry.row) in FINDINGS:
        return _clean(entry.study.finding(plan.project.parts[entry.study.name], entry.audit.key, entry.row))
    return _clean(f"{said(entry.row)}: {entry.told}")


def _numbers(entry: Entry) -> str:
    """A verdict's difference, with its interval and adjusted p where it has them."""
    row = entry.study.decisive(entry.row)
    parts = [f"difference {with_unit(row)}"]
    if row.get("ci_low") is not None and row.get("ci_high") is not None:
        parts.append(f"95% interval {row['ci_low']:.3g} to {row['ci_high']:.3g}")
    if row.get("p_holm") is not None:
        parts.append(f"adjusted p {row['p_holm']:.2g}")
    return _clean(", ".join(parts))


def _clean(text: str) -> str:
    """Without characters that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)


def _summary(plan: Plan, rule: Rule, found: Examined, reasons: Sequence[str]) -> str:
    """The verdicts in Markdown: what closes the gate, then each study in a table with its worst findings in words."""
    lines = [f"## Fairness, profile {_plain(plan.project.name)}", ""]
    if rule.refused:
        closed = "; ".join(_plain(entry.told) for entry in found.closing[:_SENTENCES])
        more = f" and {len(found.closing) - _SENTENCES} more" if len(found.closing) > _SENTENCES else ""
        closes = f"**The gate ({', '.join(rule.refused)}) is closed** by {closed}{more}."
        passes = f"The gate ({', '.join(rule.refused)}) lets it pass."
        stays = f"**The gate ({', '.join(rule.refused)}) stays closed**"
        undecided = f"{stays}, as it lacks verdicts: {_plain(found.open)}."
        lines += [closes if found.closing else undecided if found.open else passes, ""]
    if rule.refused:
        told = *told_rule(found, rule), *told_before(found), *detectable(plan, found.looked_at)
        lines += [f"- {_plain(line)}" for line in told]
    lines += [f"- {_plain(told)}" for told in answer_ages(plan.lineage, plan.lake, found.fresh)]
    lines += ["", *_compared(found)] if found.baseline else [""]
    if reasons:
        lines += [*(f"- Not made: {_plain(reason)}" for reason in reasons[:_SENTENCES]), ""]
    fresh = {(study.name, audit.name) for study, audit in found.fresh}
    for study in plan.project.studies:
        audits = worst_first(study, [audit for own, audit in found.audits if own is study])
        if audits:
            lines += _of_study(plan, study, audits, {name for own, name in fresh if own == study.name})
    lines.append("Texts in the report may offend. A verdict holds for this model, these words and these texts.")
    return "\n".join(lines) + "\n"


def _compared(found: Examined) -> Iterable[str]:
    """Before and after: the verdicts that turned, and the gaps that are shown to have changed."""
    yield f"### Before and now, compared with {_plain(found.baseline)}"
    yield ""
    told, rest = worth_telling(found.changes)
    if told:
        yield "| verdict | before | now | the gap |"
        yield "| --- | --- | --- | --- |"
    for changed in told:
        cells = changed.name, said(changed.then) if changed.then else "none", said(changed.row), changed.told
        yield "| " + " | ".join(_plain(cell) for cell in cells) + (" **worse** |" if changed.worse else " |")
    if told:
        yield ""
    yield f"{rest[0].upper()}{rest[1:]}."
    yield ""


def _of_study(plan: Plan, study: AnyStudy, audits: list[Audit], fresh: set[str]) -> Iterable[str]:
    verdicts = list(counted(study, audits)) or ["verdict"]
    yield f"### {_plain(study.title)}"
    yield ""
    yield "| " + " | ".join([*study.axes, *verdicts]) + " |"
    yield "|" + " --- |" * len(study.axes) + " ---: |" * len(verdicts)
    for audit in audits:
        own = counted(study, [audit])
        cells = [str(own.get(name, "")) for name in verdicts]
        if missing := _missing(audit, audit.name in fresh):
            cells = [_plain(missing), *[""] * (len(verdicts) - 1)]
        yield "| " + " | ".join([*map(_plain, audit.key.values()), *cells]) + " |"
    yield ""
    part = plan.project.parts[study.name]
    told = findings(study, part, [audit for audit in audits if audit.name in fresh])
    yield from (f"- {_plain(sentence)}" for sentence in told[:_SENTENCES])
    if len(told) > _SENTENCES:
        yield f"- and {number_of(len(told) - _SENTENCES, 'more audit')} with a difference"
    if told:
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
    """Text in which nothing is Markdown or HTML, and nobody is called: it quotes words of corpora and models."""
    text = text.replace("@", "@\u200b")
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
